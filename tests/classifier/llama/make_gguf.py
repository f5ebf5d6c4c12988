"""Give a plain language model the metadata that makes llama.cpp serve it as a decision model.

python make_gguf.py SOURCE.gguf TARGET.gguf TEMPLATE.jinja
"""

from __future__ import annotations

import sys
from pathlib import Path

import gguf


def convert(source: str, target: str, template: str) -> None:
    """Copy every field and tensor, and add the decision type and its prompt template."""
    reader = gguf.GGUFReader(source)
    architecture = reader.fields["general.architecture"].contents()
    writer = gguf.GGUFWriter(target, architecture)
    own = {"general.architecture", "general.name", "tokenizer.chat_template"}
    for key, field in reader.fields.items():
        if key in own or key.startswith("GGUF."):
            continue
        kind = field.types[0]
        item_kind = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(key, field.contents(), kind, sub_type=item_kind)
    writer.add_string("general.name", "smol-decision")
    writer.add_string(f"{architecture}.decision.type", "openjev")
    templates = [{"name": "systemone", "template": Path(template).read_text(encoding="utf-8")}]
    if "tokenizer.chat_template" in reader.fields:
        plain = reader.fields["tokenizer.chat_template"].contents()
        templates.append({"name": "default", "template": plain})
    writer.add_chat_template(templates)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    convert(*sys.argv[1:])
