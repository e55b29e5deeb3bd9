// A copy button on each block of code: of a console or a Python session, only what was typed, without prompts.
document.addEventListener("DOMContentLoaded", () => {
  for (const block of document.querySelectorAll("div.highlight")) {
    const text = block.querySelector("pre");
    if (!text || !navigator.clipboard) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.setAttribute("aria-label", "Copy this code");
    button.addEventListener("click", async () => {
      const lines = text.textContent.replace(/\n$/, "").split("\n");
      const commands = lines.filter((line) => /^(\$|>>>|\.\.\.) /.test(line)).map((line) => line.replace(/^\S+ /, ""));
      await navigator.clipboard.writeText((commands.length ? commands : lines).join("\n"));
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), 1500);
    });
    block.append(button);
  }
});
