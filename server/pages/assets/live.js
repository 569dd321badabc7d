// Keeps a page up to date over one stream of events, and shows times as the reader's clock has them.
// Without this script a page shows the same facts as of its loading, and all forms work.
"use strict";
(() => {
	// The one place at which text becomes HTML: what templ has escaped on the server.
	const policy = window.trustedTypes
		? trustedTypes.createPolicy("muster", { createHTML: (s) => s })
		: { createHTML: (s) => s };

	const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "local";
	const clock = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "2-digit", day: "2-digit",
		hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
	const short = (d) => {
		const p = Object.fromEntries(clock.formatToParts(d).map((x) => [x.type, x.value]));
		return `${p.year}-${p.month}-${p.day} ${p.hour === "24" ? "00" : p.hour}:${p.minute}:${p.second}`;
	};

	// times shows each instant in the reader's zone, with UTC in its title.
	function times(root) {
		for (const t of root.querySelectorAll("time[datetime]")) {
			const d = new Date(t.dateTime);
			if (Number.isNaN(d.getTime()) || t.title) continue;
			t.title = `${t.textContent} · ${zone}`;
			if (d.getTimezoneOffset() !== 0) t.textContent = short(d);
		}
		const z = document.getElementById("zone");
		if (z && !z.title) { z.title = "times: " + zone; z.textContent = "times: " + zone; }
	}
	times(document);

	document.addEventListener("keydown", (e) => {
		const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName);
		if (e.key !== "/" || typing || e.ctrlKey || e.metaKey || e.altKey) return;
		const box = document.getElementById("search");
		if (box) { e.preventDefault(); box.focus(); box.select(); }
	});

	const main = document.querySelector("main[data-live]");
	const line = document.getElementById("live-state");
	if (!main || !window.EventSource) return;

	// put replaces the content of a part, and keeps what the reader has opened or focused in it.
	function put(box, html, hash) {
		const open = [...box.querySelectorAll("details[open][id]")].map((d) => d.id);
		const at = box.contains(document.activeElement) ? document.activeElement.id : "";
		box.innerHTML = policy.createHTML(html);
		if (hash) box.dataset.hash = hash;
		for (const id of open) document.getElementById(id)?.setAttribute("open", "");
		if (at) document.getElementById(at)?.focus({ preventScroll: true });
		times(box);
		box.dispatchEvent(new CustomEvent("muster:part", { bubbles: true }));
	}

	function part(p) {
		const box = document.getElementById(p.id);
		if (!box || !main.contains(box)) return;
		const busy = box.contains(document.activeElement)
			&& /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName);
		if (!p.hold && !busy) { put(box, p.html, p.hash); return; }
		let bar = document.getElementById(p.id + "-fresh");
		if (!bar) {
			bar = document.createElement("p");
			bar.id = p.id + "-fresh";
			bar.className = "fresh";
			const b = document.createElement("button");
			b.type = "button";
			b.textContent = "This list has changed: show it";
			bar.append(b);
			bar.setAttribute("role", "status");
			box.before(bar);
		}
		bar.firstChild.onclick = async () => {
			bar.remove(); // news that comes meanwhile makes another one
			try {
				const now = p.html ? p : (await once()).find((one) => one.id === p.id);
				if (now) put(box, now.html, now.hash);
			} catch {
				if (!document.getElementById(bar.id)) box.before(bar);
			}
		};
	}

	// say shows how fresh the page is, if it is not.
	function say(text) {
		if (!line) return;
		line.textContent = text;
		line.hidden = !text;
	}

	// ended stops all asking: the page shows what it knew last.
	function ended(words) {
		over = true;
		give();
		say(words + "; this page shows what it knew last. ");
		const a = document.createElement("a");
		a.href = "/login?next=" + encodeURIComponent(location.pathname + location.search);
		a.textContent = "Log in";
		line?.append(a);
	}

	const seen = () => [...main.querySelectorAll("[data-hash]")]
		.map((e) => `${e.id}=${e.dataset.hash}`).join(",");
	const missing = 22000; // two signs of life
	let source = null, heard = Date.now(), over = false;

	function stale() {
		if (over || document.hidden) return;
		if (Date.now() - heard > missing) {
			say(`Stale since ${short(new Date(heard))}: the server does not answer; asking again.`);
			reload(true);
		}
	}

	// once returns the parts of the page as they are now. A tab that asks again and again may get some
	// that are a few seconds old.
	async function once(again) {
		const r = await fetch(main.dataset.live.replace("/live?at=", `/live/once?${again ? "again&" : ""}at=`),
			{ headers: { Accept: "application/json" } });
		if (r.status === 401) { ended("Your session has ended"); return []; }
		if (!r.ok) throw new Error(r.status);
		return r.json();
	}

	// reload asks for the page itself and takes its parts: for a browser without a stream.
	let asking = false;
	async function reload(again) {
		if (asking) return;
		asking = true;
		const before = heard;
		try {
			const list = await once(again);
			if (source && heard !== before) return; // the stream has brought newer parts
			for (const p of list) {
				const box = document.getElementById(p.id);
				if (box && box.dataset.hash !== p.hash) { part(p); box.dataset.hash = p.hash; }
			}
			if (over) return;
			heard = Date.now();
			say(source ? "" : "Asked every 5 s: other tabs have the streams.");
		} catch { /* stale says so */ } finally { asking = false; }
	}

	function listen() {
		source = new EventSource(main.dataset.live + "&seen=" + encodeURIComponent(seen()));
		const on = (name, f) => source.addEventListener(name, (e) => { heard = Date.now(); say(""); f(e); });
		on("part", (e) => part(JSON.parse(e.data)));
		on("alive", () => {});
		on("trouble", (e) => say("Not known at this moment: " + JSON.parse(e.data)));
		on("over", (e) => ended(JSON.parse(e.data)));
		// A browser tries again by itself, unless the server has refused it.
		source.addEventListener("error", () => { if (source?.readyState === EventSource.CLOSED) give(); });
	}

	// A browser opens six connections to a server, so at most four tabs have a stream; the others ask.
	// A hidden tab gives its stream away.
	async function take() {
		if (over || document.hidden || source) return;
		if (!navigator.locks) { listen(); return; }
		for (let i = 0; i < 4 && !source; i++) {
			await new Promise((tried) => {
				navigator.locks.request("muster-live-" + i, { ifAvailable: true }, (lock) => {
					if (!lock || source || document.hidden) { tried(); return null; }
					listen();
					tried();
					return new Promise((free) => { leave = free; });
				});
			});
		}
	}
	let leave = () => {};
	function give() {
		source?.close();
		source = null;
		leave();
	}
	document.addEventListener("visibilitychange", () => {
		if (document.hidden) { give(); return; }
		heard = Date.now();
		reload();
		take();
	});
	addEventListener("pagehide", give);
	addEventListener("pageshow", (e) => { if (e.persisted) take(); });
	setInterval(stale, 1000);
	setInterval(() => { if (!source && !document.hidden && !over) { take().then(() => { if (!source) reload(true); }); } }, 5000);
	take();
})();
