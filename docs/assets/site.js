// The copy button of a terminal's block copies its commands, with their
// here-documents, and neither prompts nor output. The theme copies data-copy.
for (const code of document.querySelectorAll(".language-console code")) {
  const commands = []
  let end = ""
  for (const line of code.textContent.split("\n")) {
    const command = line.startsWith("$ ") && end === ""
    if (!command && end === "") continue
    commands.push(command ? line.slice(2) : line)
    if (command) end = (line.match(/<<'?(\w+)'?/) || ["", ""])[1]
    else if (line.trim() === end) end = ""
  }
  if (commands.length > 0) code.setAttribute("data-copy", commands.join("\n"))
}
