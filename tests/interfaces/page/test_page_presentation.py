"""What the page shows: languages, widths, labels, failures in words, and never HTML."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from dsh_memory.interfaces.page.app import STATIC
from dsh_memory.runtime.config.keys import keys

FILE = '[jev]\nmodel = "mine"\ncontext_window = 8192\n'
SCRIPT = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"


def _wait_text(tab: Any, selector: str, text: str) -> None:
    tab.wait_for_function(
        "([selector, text]) => document.querySelector(selector)?.innerText.includes(text)",
        arg=[selector, text],
        polling=50,
    )


def test_the_browsers_language_comes_first_and_can_be_switched(serve: Any, open_tab: Any) -> None:
    server = serve(FILE)
    tab = open_tab(server.url, locale="zh-CN")
    assert tab.get_attribute("html", "lang") == "zh-CN"
    assert tab.inner_text("#jev-title") == "本地 Jev"
    tab.fill("#field-jev-context_window", "12")
    _wait_text(tab, "#field-jev-context_window-problem", "必须是 1024 到 1048576 之间的整数")
    tab.click("[data-language=en]")
    assert tab.get_attribute("html", "lang") == "en"
    assert tab.inner_text("#jev-title") == "Local Jev"
    assert tab.input_value("#field-jev-context_window") == "12"
    assert "Must be an integer" in tab.inner_text("#field-jev-context_window-problem")
    assert "1 unsaved edit" in tab.inner_text("#summary")
    tab.click("#field-jev-context_window-undo")
    tab.reload()
    tab.wait_for_selector(".field")
    assert tab.get_attribute("html", "lang") == "en"  # the choice outlives a reload


def test_refusals_are_chinese_on_the_chinese_page(serve: Any, open_tab: Any) -> None:
    server = serve(FILE)
    tab = open_tab(server.url, locale="zh-TW")
    for key, value, words in (
        ("jev.model", "", "必须填写模型名称"),
        ("jev.model", " x", "首尾不能有空白"),
        ("jev.model", "x:cloud", "云端模型"),
        ("jev.model", "x" * 201, "最多 200 个字符"),
        ("jev.base_url", "http://evil.example", "不是允许的基础 URL"),
        ("jev.load_timeout", "0", "必须是大于 0 且不超过 3600 的数"),
        ("obsidian.vault_path", "~/x", "这里不展开 ~"),
        ("store.home", "x", "必须是绝对路径"),
        ("index.default_limit", "500", "不能大于 index.max_limit（100）"),
    ):
        control = f"#field-{key.replace('.', '-')}"
        tab.fill(control, value)
        _wait_text(tab, f"{control}-problem", words)
        tab.click(f"{control}-undo")
    tab.check("#field-obsidian-enabled")
    _wait_text(tab, "#field-obsidian-vault_path-problem", "启用笔记时必填")
    tab.check("#field-jev-enabled")
    tab.fill("#field-jev-context_window", "")
    _wait_text(tab, "#field-jev-context_window-problem", "启用 Jev 且不托管 Ollama 时必填")


def test_both_languages_have_every_text(serve: Any, open_tab: Any) -> None:
    server = serve(FILE)
    tab = open_tab(server.url)
    en, zh = (
        tab.evaluate(
            "async (name) => { const { default: d } = await import(`./texts-${name}.js`);"
            " const { reasons, ...rest } = d; return rest; }",
            name,
        )
        for name in ("en", "zh")
    )
    missing = {name for name in en if name not in zh}
    assert missing == set()
    # English shows the names of facts themselves, only Chinese has words for all of them.
    assert {name for name in zh if name not in en and not name.startswith("status_")} == set()
    assert set(en["labels"]) == set(zh["labels"]) == set(zh["meanings"]) == set(keys())
    assert set(en["choices"]) == set(zh["choices"])
    for name, words in en.items():
        if isinstance(words, str) and name in zh:
            assert set(re.findall(r"{\w+}", words)) == set(re.findall(r"{\w+}", zh[name])), name


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_overflows_at_either_width(serve: Any, open_tab: Any, scheme: str) -> None:
    server = serve(FILE, env={"DSH_MEMORY_JEV__MODEL": "a-long-name" * 18})
    tab = open_tab(server.url, color_scheme=scheme)
    tab.click("#stage")
    for width in (360, 1440):
        tab.set_viewport_size({"width": width, "height": 800})
        for language in ("en", "zh"):
            tab.click(f"[data-language={language}]")
            wide = tab.evaluate("document.documentElement.scrollWidth")
            assert wide <= width
    ground = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(int(part) for part in re.findall(r"\d+", ground)[:3])
    assert (brightness > 600) == (scheme == "light")


def test_every_control_has_a_name_and_is_reached_by_keyboard(serve: Any, open_tab: Any) -> None:
    server = serve(FILE)
    tab = open_tab(server.url)
    unnamed = tab.evaluate(
        "() => [...document.querySelectorAll('input, select, button')].filter((node) =>"
        " node.offsetParent !== null &&"
        " !(node.labels?.length ? node.labels[0].innerText : node.innerText).trim())"
        ".map((node) => node.outerHTML)"
    )
    assert unnamed == []
    tab.evaluate("() => document.activeElement.blur()")
    reached: list[str] = []
    for _ in range(120):
        tab.keyboard.press("Tab")
        reached.append(tab.evaluate("() => document.activeElement.id"))
        if reached[-1] == "save":
            break
    assert {f"field-{key.replace('.', '-')}" for key in keys()} <= set(reached)
    assert {"stage", "check-jev", "check-obsidian", "discard", "save"} <= set(reached)


def test_a_switch_is_turned_and_saved_by_keyboard(serve: Any, open_tab: Any) -> None:
    server = serve(FILE)
    tab = open_tab(server.url)
    tab.focus("#field-search-exclude_echoes")
    tab.keyboard.press("Space")
    _wait_text(tab, "#summary", "1 unsaved edit")
    tab.focus("#save")
    tab.keyboard.press("Enter")
    _wait_text(tab, "#notices", "Saved")
    assert "exclude_echoes = true" in server.config.read_text()


def test_inks_keep_contrast_aa_on_every_ground() -> None:
    css = (STATIC / "page.css").read_text()
    light, dark = re.findall(r":root \{(.*?)\}", css, re.DOTALL)
    for block in (light, light + dark):
        colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", block))
        pairs = [
            (ink, ground) for ink in ("ink", "muted") for ground in ("ground", "surface", "well")
        ]
        pairs += [(ink, "surface") for ink in ("accent", "warn", "error", "ok")]
        pairs += [(name, f"{name}-soft") for name in ("accent", "warn", "error", "ok")]
        pairs += [("ink", f"{name}-soft") for name in ("warn", "error", "ok")]
        pairs += [("muted", f"{name}-soft") for name in ("warn", "error", "ok")]
        pairs += [("on-accent", "accent"), ("on-accent", "accent-hover"), ("surface", "error")]
        for ink, ground in pairs:
            assert _contrast(colours[ink], colours[ground]) >= 4.5, (ink, ground)
        for ground in ("surface", "well"):  # borders of controls
            assert _contrast(colours["edge"], colours[ground]) >= 3


def _contrast(one: str, other: str) -> float:
    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_nothing_is_loaded_from_elsewhere(serve: Any, open_tab: Any, browser: Any) -> None:
    server = serve(FILE)
    asked: list[str] = []
    context = browser.new_context()
    try:
        tab = context.new_page()
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto(server.url)
        tab.wait_for_selector(".facts-block")
        assert asked
        assert all(url.startswith(f"{server.origin}/") for url in asked)
        assert not any(server.token in url.partition("#")[0] for url in asked)
        assert "token" not in tab.url  # nor does it stay in the address bar and the history
    finally:
        context.close()
    sources = "".join(path.read_text() for path in STATIC.iterdir())
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", sources)


def test_values_and_file_names_are_text_and_nothing_else(
    serve: Any, open_tab: Any, home: Path
) -> None:
    # A path may hold any character but "/" and NUL.
    name = SCRIPT.replace("/", "∕")
    folder = home / f"{name} 'quoted' $(touch pwned) ‮gpj"
    folder.mkdir()
    sessions = home / "dsh" / "sessions" / "--p--"
    sessions.mkdir(parents=True)
    (sessions / f"{name}.jsonl").write_text(SCRIPT)
    server = serve(
        f"[jev]\nmodel = '{name.replace(chr(39), chr(34))}'\n",
        config=folder / f"{name}.toml",
        env={"DSH_MEMORY_OBSIDIAN__VAULT_PATH": f"/{SCRIPT}"},
    )
    tab = open_tab(server.url)
    tab.wait_for_selector(".facts-block")
    assert name in tab.inner_text("#file .path")
    assert f"{name}.jsonl" in tab.inner_text("#status")
    assert SCRIPT in tab.inner_text("#field-obsidian-vault_path-facts")
    tab.fill("#field-store-home", SCRIPT)
    _wait_text(tab, "#field-store-home-problem", "absolute path")
    tab.fill("#field-jev-base_url", f"http://{SCRIPT}")
    _wait_text(tab, "#field-jev-base_url-problem", "is no allowed base URL")
    tab.click("#check-jev")
    tab.click("#check-obsidian")
    tab.wait_for_selector("#findings-jev:not([hidden])")
    tab.wait_for_selector("#findings-obsidian:not([hidden])")
    assert SCRIPT in tab.inner_text("#findings-obsidian")
    tab.click("[data-language=zh]")
    tab.click("#save")
    tab.wait_for_selector("#notices .notice")
    server.stop()
    tab.click("#save")
    tab.wait_for_selector(".notice pre")
    assert tab.locator("main img, main script, main a").count() == 0
    assert "owned" not in tab.title()


def test_rescue_commands_are_quoted_for_the_shell(serve: Any, open_tab: Any, home: Path) -> None:
    folder = home / "a 'b' $(touch pwned)"
    folder.mkdir()
    server = serve(FILE, config=folder / "config.toml")
    tab = open_tab(server.url)
    value = "/it's; touch pwned `x` $HOME"
    tab.fill("#field-store-home", value)
    tab.click("#field-jev-model-inherit")
    _wait_text(tab, "#summary", "2 unsaved edits")
    server.stop()
    tab.click("#save")
    _wait_text(tab, "#notices", "has stopped")
    assert tab.input_value("#field-store-home") == value
    commands = tab.inner_text(".notice pre").replace("dsh-memory ", "printf '%s\\n' ")
    printed = subprocess.run(
        ["/bin/sh", "-c", commands], cwd=home, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    config = ["config", "set", "--config", str(server.config)]
    assert printed == [*config, "store.home", value, "config", "unset", *config[2:], "jev.model"]
    assert not (home / "pwned").exists()


def test_a_stopped_server_is_noticed_and_the_draft_kept(serve: Any, open_tab: Any) -> None:
    server = serve(FILE)
    tab = open_tab(server.url)
    tab.fill("#field-jev-model", "other")
    server.stop()
    tab.evaluate("window.dispatchEvent(new Event('focus'))")
    _wait_text(tab, "#notices", "The server of this page has stopped")
    assert "dsh-memory config set jev.model other" in tab.inner_text(".notice pre")
    tab.get_by_role("button", name="Look again").click()
    _wait_text(tab, "#notices", "The server of this page has stopped")
    assert tab.input_value("#field-jev-model") == "other"
    assert server.config.read_text() == FILE


def test_an_address_opens_one_tab(serve: Any, open_tab: Any) -> None:
    server = serve(FILE)
    open_tab(server.url)
    second = open_tab(server.url, wait=".notice")
    assert "This tab has no session" in second.inner_text("#notices")
    assert second.locator(".field").count() == 0


def test_a_read_only_file_can_be_looked_at_only(serve: Any, open_tab: Any, home: Path) -> None:
    path = home / "fixed.toml"
    path.write_text(FILE)
    path.chmod(0o444)
    server = serve(None, config=path)
    tab = open_tab(server.url)
    assert "read-only" in tab.inner_text("#notices")
    tab.fill("#field-jev-model", "other")
    _wait_text(tab, "#summary", "1 unsaved edit")
    assert tab.get_attribute("#save", "aria-disabled") == "true"
    tab.click("#save", force=True)
    assert path.read_text() == FILE


def test_a_file_that_becomes_read_only_keeps_the_draft(serve: Any, open_tab: Any) -> None:
    server = serve(FILE)
    tab = open_tab(server.url)
    tab.fill("#field-jev-model", "other")
    server.config.chmod(0o444)
    tab.click("#save")
    _wait_text(tab, "#notices", "cannot be written")
    assert "CONFIG_WRITE_FAILED" in tab.inner_text("#notices")
    assert tab.input_value("#field-jev-model") == "other"
    assert server.config.read_text() == FILE


def test_a_read_only_file_system_is_told(serve: Any, open_tab: Any, home: Path) -> None:
    folder = home / "config" / "dsh-memory"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(FILE)
    script = (
        f'mount --bind "{folder}" "{folder}" && mount -o remount,ro,bind "{folder}" && exec "$@"'
    )
    prefix = ("unshare", "-rm", "sh", "-c", script, "sh")
    if (
        shutil.which("unshare") is None
        or subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("a read-only mount cannot be made here")
    server = serve(None, prefix=prefix)
    tab = open_tab(server.url)
    assert "read-only" in tab.inner_text("#notices")
    assert tab.get_attribute("#save", "aria-disabled") == "true"


def test_a_file_with_unknown_names_can_be_repaired(serve: Any, open_tab: Any) -> None:
    server = serve(FILE + "colour = 3\n[old]\nx = 1\n")
    tab = open_tab(server.url)
    assert "CONFIG_UNKNOWN_KEY" in tab.inner_text("#notices")
    assert "jev.colour, old" in tab.inner_text("#notices")
    tab.click("#stage")
    tab.click("#save")
    _wait_text(tab, "#notices", "Saved")
    assert "CONFIG_UNKNOWN_KEY" not in tab.inner_text("#notices")
    assert "colour" not in server.config.read_text()


def test_a_file_with_a_wrong_value_can_be_repaired(serve: Any, open_tab: Any) -> None:
    server = serve('[jev]\ncontext_window = "many"\n[store]\nhome = 2020-01-01\n')
    tab = open_tab(server.url)
    assert "cannot be used" in tab.inner_text("#notices")
    assert "nothing until" in tab.inner_text("#field-jev-model-facts")
    tab.fill("#field-jev-context_window", "4096")
    tab.fill("#field-store-home", "/home/of/dsh")
    tab.click("#save")
    _wait_text(tab, "#notices", "Saved")
    assert "In effect: 4096" in tab.inner_text("#field-jev-context_window-facts")


def test_a_file_that_is_no_toml_is_told_and_left_alone(serve: Any, open_tab: Any) -> None:
    server = serve("[jev\nmodel")
    tab = open_tab(server.url)
    assert "CONFIG_SYNTAX" in tab.inner_text("#notices")
    tab.fill("#field-jev-model", "other")
    tab.click("#save")
    _wait_text(tab, "#notices", "Not saved")
    assert server.config.read_text() == "[jev\nmodel"


def test_the_vault_check_looks_and_leaves_nothing(serve: Any, open_tab: Any, home: Path) -> None:
    vault = home / "vault"
    (vault / ".obsidian").mkdir(parents=True)
    server = serve(FILE)
    tab = open_tab(server.url)
    before = vault.stat()
    for path, words in (
        (str(vault), "New files can be created"),
        (str(home / "none"), "nothing at this path"),
        (str(server.config), "not a directory"),
        ("relative", "not an absolute path"),
        ("", "No vault is named"),
    ):
        tab.fill("#field-obsidian-vault_path", path)
        tab.click("#check-obsidian")
        _wait_text(tab, "#findings-obsidian", words)
    after = vault.stat()
    assert (after.st_mtime_ns, after.st_ctime_ns) == (before.st_mtime_ns, before.st_ctime_ns)
    assert [path.name for path in vault.iterdir()] == [".obsidian"]


def test_the_endpoint_check_asks_version_and_model_once(
    serve: Any, open_tab: Any, httpserver: Any
) -> None:
    httpserver.expect_request("/api/version").respond_with_json({"version": "0.35.1"})
    httpserver.expect_request("/api/show", method="POST", json={"model": "mine"}).respond_with_json(
        {"capabilities": ["decision"], "parameters": "num_ctx    2048", "model_info": {}}
    )
    httpserver.expect_request("/api/show", method="POST").respond_with_json(
        {"error": "model 'x:latest' not found"}, status=404
    )
    server = serve(FILE)
    tab = open_tab(server.url)
    tab.click("#check-jev")
    _wait_text(tab, "#findings-jev", "refused")
    tab.fill("#field-jev-base_url", f"http://127.0.0.1:{httpserver.port}")
    assert tab.locator("#findings-jev").is_hidden()  # it told of the value before
    tab.click("#check-jev")
    _wait_text(tab, "#findings-jev", "context window of 2048")
    assert "Ollama 0.35.1" in tab.inner_text("#findings-jev")
    assert [request.path for request, _ in httpserver.log] == ["/api/version", "/api/show"]
    tab.fill("#field-jev-model", "x")
    tab.click("#check-jev")
    _wait_text(tab, "#findings-jev", "The model x is not there")
    tab.fill("#field-jev-base_url", "http://evil.example")
    tab.click("#check-jev")
    _wait_text(tab, "#findings-jev", "is no allowed base URL")
    assert server.config.read_text() == FILE


def test_the_status_says_what_memory_status_says(serve: Any, open_tab: Any, home: Path) -> None:
    server = serve(FILE)
    tab = open_tab(server.url)
    _wait_text(tab, "#status", str(home / "dsh"))
    shown = tab.inner_text("#status")
    told = server.command("status").stdout
    for fact in (str(home / "dsh"), str(server.config), "will be built at the first search"):
        assert fact in shown
        assert fact in told
    assert [path.name for path in home.iterdir()] == ["config"]  # looking made nothing
