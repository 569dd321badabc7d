package passkeys

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"time"

	"muster/api"
	"muster/internal/sshsig"
	"muster/server/pages/frame"
	"muster/trust"
)

// asked has what a browser needs to ask an authenticator for a signature.
type asked struct {
	challenge string // in base64
	hash      string // of the order
}

// sign finds out which order would be signed, of which task.
func sign(h frame.House, r *http.Request) (frame.Asking, error) {
	id := r.PathValue("task")
	if r.Method == http.MethodPost && r.PostForm.Get("client") == "" {
		return frame.Asking{}, frame.Refusal(http.StatusUnprocessableEntity, "nothing was signed: a "+
			"passkey needs JavaScript; without it, sign with `muster approvals approve %s`", id)
	}
	var d api.HeldDetail
	if err := h.Get("/v1/approvals/"+url.PathEscape(id), nil, &d); err != nil {
		return frame.Asking{}, err
	}
	path := "/approvals/" + url.PathEscape(id)
	a := frame.Asking{Word: "sign", Title: "Sign the order: " + d.Runbook + ", task " + id,
		Nav: "Approvals", Back: path, Method: http.MethodPost, Path: "/v1" + path, Unexplained: true,
		Target: frame.Target{N: d.Hosts, Noun: "host", Set: frame.SetOf("sign", d.Hash)}}
	a.Hit("Runbook %s on %s (%s), ordered by %s", d.Runbook, frame.Count(d.Hosts, "host", "hosts"),
		d.On, d.Operator)
	if d.Reason != "" {
		a.Hit("Because: %s", d.Reason)
	}
	if args := d.Ran.Text(); args != "" {
		a.Hit("Its arguments: %s", args)
	}
	for _, c := range d.Customers {
		a.Hit("%s of %s: %s", frame.Count(c.Count, "host", "hosts"), customer(c.Customer),
			frame.ClipList(c.Hosts))
	}
	a.Hit("It may begin from %s until %s.", when(d.NotBefore.Time), when(d.NotAfter.Time))
	a.Hit("You sign the order with the hash %s, and no other one.", d.Hash)
	a.More = askBrowser(asked{hash: d.Hash, challenge: base64.StdEncoding.EncodeToString(
		sshsig.Challenge(trust.NamespaceOrder, []byte(d.Order)))})
	a.Body = func(form url.Values) any { return endorsed(d.Hash, form) }
	a.Done = func(*frame.Reply) string { return "/tasks/" + url.PathEscape(id) }
	return a, nil
}

func customer(name string) string {
	if name == "" {
		return "no customer"
	}
	return name
}

func when(t time.Time) string { return t.UTC().Format(frame.TextForm) }

// endorsed returns the request of a form that passkey.js has filled. A text that is no base64
// becomes an empty one, which the API refuses.
func endorsed(hash string, form url.Values) api.EndorseRequest {
	field := func(name string) []byte {
		data, err := base64.StdEncoding.DecodeString(strings.TrimSpace(form.Get(name)))
		if err != nil {
			return []byte{}
		}
		return data
	}
	return api.EndorseRequest{Hash: hash, Passkey: &api.PasskeyProof{Client: field("client"),
		Authenticator: field("authenticator"), Signature: field("signature")}}
}
