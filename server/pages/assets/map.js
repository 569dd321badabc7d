// Draws one cell a host on a canvas. The table beside it has the same facts as text.
"use strict";
(() => {
	const style = getComputedStyle(document.documentElement);
	const colour = (name) => style.getPropertyValue(name).trim();
	const hues = ["#2f6fa8", "#b0651a", "#3f7d4e", "#8a4f9e", "#a33b4a", "#4f6670", "#7a6a14", "#2d7d86"];

	for (const box of document.querySelectorAll("[data-map]")) draw(box);

	function draw(box) {
		const canvas = box.querySelector("canvas"), words = box.querySelector("output");
		const pen = canvas.getContext("2d");
		let data = null, size = 10, wide = 1, at = -1, timer = null;

		// fill returns the colour of a kind, as the style sheet has it; a number is one of a row of hues.
		const fill = (k) => k.startsWith("#") ? hues[+k.slice(1) % hues.length] : colour("--" + k);

		function paint() {
			if (!data) return;
			const room = Math.max(200, Math.min(box.clientWidth, 1600) - 2);
			const n = data.names.length;
			size = Math.max(3, Math.min(14, Math.floor(Math.sqrt(room * 420 / Math.max(1, n)))));
			wide = Math.max(1, Math.floor(room / size));
			const high = Math.max(1, Math.ceil(n / wide)), ratio = window.devicePixelRatio || 1;
			canvas.width = wide * size * ratio;
			canvas.height = high * size * ratio;
			canvas.style.width = wide * size + "px";
			canvas.style.height = high * size + "px";
			pen.setTransform(ratio, 0, 0, ratio, 0, 0);
			const gap = size > 4 ? 1 : 0, fills = data.kinds.map((k) => fill(k.fill));
			const some = new Set(data.cells);
			for (let kind = 0; kind < fills.length; kind++) {
				if (!some.has(kind)) continue;
				pen.fillStyle = fills[kind];
				const mark = data.kinds[kind].mark;
				for (let i = 0; i < n; i++) {
					if (data.cells[i] !== kind) continue;
					const x = (i % wide) * size, y = Math.floor(i / wide) * size, s = size - gap;
					// The shape says the same as the colour.
					if (mark === "half" && s > 3) pen.fillRect(x, y + s / 2, s, s / 2);
					else if (mark === "dot" && s > 3) pen.fillRect(x + s / 3, y + s / 3, s / 3, s / 3);
					else if (mark === "cross" && s > 5) {
						pen.fillRect(x, y, s, s);
						pen.clearRect(x + s / 2 - 1, y + 1, 2, s - 2);
						pen.clearRect(x + 1, y + s / 2 - 1, s - 2, 2);
					} else pen.fillRect(x, y, s, s);
				}
			}
			if (at >= 0) {
				pen.strokeStyle = colour("--focus");
				pen.lineWidth = 2;
				pen.strokeRect((at % wide) * size, Math.floor(at / wide) * size, size, size);
			}
		}

		function tell(i) {
			if (!data || i < 0 || i >= data.names.length) return;
			at = i;
			paint();
			words.textContent = `${data.names[i]}: ${data.kinds[data.cells[i]].name}`;
		}
		const cell = (e) => {
			const r = canvas.getBoundingClientRect();
			return Math.floor((e.clientY - r.top) / size) * wide + Math.floor((e.clientX - r.left) / size);
		};
		canvas.addEventListener("mousemove", (e) => tell(cell(e)));
		canvas.addEventListener("click", (e) => go(cell(e)));
		function go(i) {
			if (data && data.names[i]) location.href = data.link + encodeURIComponent(data.names[i]);
		}
		canvas.addEventListener("keydown", (e) => {
			const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: wide, ArrowUp: -wide }[e.key];
			if (step) {
				e.preventDefault();
				tell(Math.max(0, Math.min((data ? data.names.length : 1) - 1, at + step)));
			}
			if (e.key === "Enter" && at >= 0) go(at);
		});

		const late = 2000; // ms: what the server says of a known map may be nearly so old
		let cost = 0; // of the last load, in ms
		let heard = -Infinity; // when the last news came
		const unknown = "The map is not known at this moment.";
		let known = ""; // the words before these
		async function load() {
			const begun = performance.now();
			try {
				// Hosts whose names are here already need not come again.
				const r = await fetch(box.dataset.map + (data?.set ? "?known=" + data.set : ""), { headers: { Accept: "application/json" } });
				if (!r.ok) throw new Error(r.status);
				const d = await r.json();
				d.cells = Uint8Array.from(atob(d.cells), (c) => c.charCodeAt(0));
				if (d.same) d.names = data.names;
				data = d;
				paint();
				canvas.dataset.drawn = String(d.names.length);
				cost = performance.now() - begun;
				if (heard > begun - late) later();
				if (words.textContent === unknown) words.textContent = known;
			} catch {
				if (words.textContent !== unknown) known = words.textContent;
				words.textContent = unknown;
				if (box.dataset.mapLive) later();
			}
		}
		new ResizeObserver(paint).observe(box);
		matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
		load();
		// What the page hears over its stream is also news for the map.
		function later() {
			timer ??= setTimeout(() => { timer = null; load(); }, Math.max(late, 10 * cost));
		}
		document.addEventListener("muster:part", () => {
			heard = performance.now();
			if (box.dataset.mapLive) later();
		});
	}
})();
