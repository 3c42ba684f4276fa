/* List the other versions in the sidebar. */
"use strict";
for (const version of window.TAILRACE_VERSIONS || []) {
  const link = document.createElement("a");
  link.className = "reference internal";
  link.textContent = version;
  link.href = `${document.documentElement.dataset.content_root}../${version}/index.html`;
  const item = document.createElement("li");
  item.className = "toctree-l1";
  item.append(link);
  document.getElementById("versions").prepend(item);
}
