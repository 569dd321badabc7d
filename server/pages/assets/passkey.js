// Asks the browser for a passkey: to make one, or to sign an order. The server checks all of it.
"use strict";
(() => {
	const box = document.getElementById("passkey");
	const form = box?.closest("form");
	if (!form) return;
	const text = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer)));
	const bytes = (base64) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
	const chance = (n) => crypto.getRandomValues(new Uint8Array(n));

	function check() {
		if (/^[\d.]+$|^\[/.test(location.hostname))
			throw new Error("a passkey belongs to a name, and this page is at an address. Open it by its name, " +
				"or on the machine of the server as http://localhost:" + location.port);
		if (!navigator.credentials)
			throw new Error("this page came over http. Open it over https: over http, browsers know passkeys at localhost only");
	}
	async function make() {
		const name = box.dataset.name;
		const made = await navigator.credentials.create({publicKey: {
			rp: {id: location.hostname, name: "muster"},
			user: {id: chance(16), name, displayName: name},
			challenge: chance(16), attestation: "none",
			pubKeyCredParams: [{type: "public-key", alg: -7}],
			authenticatorSelection: {residentKey: "required", userVerification: "required"},
		}});
		const key = made.response.getPublicKey();
		if (!key) throw new Error("this browser does not say the public key: use a newer one");
		return {key: text(key), site: location.hostname};
	}
	async function sign() {
		const {response: r} = await navigator.credentials.get({publicKey: {
			rpId: location.hostname, challenge: bytes(box.dataset.challenge), userVerification: "required",
		}});
		return {client: text(r.clientDataJSON), authenticator: text(r.authenticatorData), signature: text(r.signature)};
	}
	let busy = false;
	form.addEventListener("submit", async (e) => {
		e.preventDefault();
		if (busy) return;
		busy = true;
		const wrong = box.querySelector("[role=alert]");
		wrong.hidden = true;
		try {
			check();
			const values = await (box.dataset.challenge ? sign() : make());
			for (const [name, value] of Object.entries(values)) form.elements[name].value = value;
			form.submit();
		} catch (why) {
			wrong.textContent = "Nothing was done: " + (why.name === "NotAllowedError" ?
				"you said no, the time was over, or there is no passkey of yours for this site" : why.message);
			wrong.hidden = false;
		}
		busy = false;
	});
})();
