// Asks the browser for a passkey: to make one, or to sign an order. The server checks all of it.
"use strict";
(() => {
	const box = document.getElementById("passkey");
	const form = box?.closest("form");
	if (!form) return;
	const text = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer)));
	const bytes = (base64) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
	const chance = (n) => crypto.getRandomValues(new Uint8Array(n));

	async function make() {
		const name = box.dataset.name;
		const made = await navigator.credentials.create({publicKey: {
			rp: {id: location.hostname, name: "muster"},
			user: {id: chance(16), name, displayName: name},
			challenge: chance(16), attestation: "none",
			pubKeyCredParams: [{type: "public-key", alg: -7}],
			authenticatorSelection: {residentKey: "required", userVerification: "required"},
		}});
		return {key: text(made.response.getPublicKey()), site: location.hostname};
	}
	async function sign() {
		const {response: r} = await navigator.credentials.get({publicKey: {
			rpId: location.hostname, challenge: bytes(box.dataset.challenge), userVerification: "required",
		}});
		return {client: text(r.clientDataJSON), authenticator: text(r.authenticatorData), signature: text(r.signature)};
	}
	form.addEventListener("submit", async (e) => {
		e.preventDefault();
		const wrong = box.querySelector("[role=alert]"), buttons = form.querySelectorAll("button");
		wrong.hidden = true;
		buttons.forEach((b) => { b.disabled = true; });
		try {
			if (!navigator.credentials) throw new Error("a browser knows passkeys only over https, or at localhost");
			const values = await (box.dataset.challenge ? sign() : make());
			for (const [name, value] of Object.entries(values)) form.elements[name].value = value;
			form.submit();
		} catch (why) {
			wrong.textContent = "Nothing was done: " + why.message;
			wrong.hidden = false;
			buttons.forEach((b) => { b.disabled = false; });
		}
	});
})();
