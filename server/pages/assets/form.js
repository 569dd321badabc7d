// Counts the hosts that a selector picks while it is typed.
"use strict";
(() => {
	for (const box of document.querySelectorAll("input[data-count]")) {
		const out = document.getElementById(box.dataset.count);
		let timer = null, asked = 0;
		box.addEventListener("input", () => {
			clearTimeout(timer);
			timer = setTimeout(async () => {
				const n = ++asked;
				try {
					const r = await fetch("/fleet/count?on=" + encodeURIComponent(box.value));
					const text = (await r.text()).slice(0, 400);
					if (n === asked) out.textContent = text;
				} catch { if (n === asked) out.textContent = "The server does not answer."; }
			}, 250);
		});
	}
})();
