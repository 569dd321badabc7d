// Counts the hosts that a selector picks, at once and while it is typed.
"use strict";
(() => {
	for (const box of document.querySelectorAll("input[data-count]")) {
		const out = document.getElementById(box.dataset.count);
		let timer = null, asked = 0;
		async function count() {
			const n = ++asked;
			try {
				const r = await fetch("/fleet/count?on=" + encodeURIComponent(box.value));
				const text = (await r.text()).slice(0, 400);
				if (n === asked) out.textContent = text;
			} catch { if (n === asked) out.textContent = "The server does not answer."; }
		}
		box.addEventListener("input", () => {
			clearTimeout(timer);
			timer = setTimeout(count, 250);
		});
		if (box.value) count(); // what a link has brought
	}
})();
