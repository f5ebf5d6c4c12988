// The draft as shell commands, for the day that the page can no longer save it.

export function commandsOf(operations, configOption) {
  const option = configOption === null ? "" : ` --config ${quoted(configOption)}`;
  return operations
    .map(({ op, key, value }) =>
      op === "unset"
        ? `dsh-memory config unset${option} ${quoted(key)}`
        : `dsh-memory config set${option} ${quoted(key)} ${quoted(String(value))}`,
    )
    .join("\n");
}

function quoted(word) {
  return /^[A-Za-z0-9_\/:.,@%+=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
