package passkeys

import (
	"encoding/base64"
	"net/http"
	"strings"

	"muster/api"
	"muster/internal/sshsig"
	"muster/server/pages/frame"
	"muster/trust"
)

// made has what the page of passkeys shows.
type made struct {
	who  string
	line string // of allowed_signers; empty: none was made now
	bad  string // why there is none
}

// thePasskeys shows how one makes a passkey. If the browser has just made one, its public key is in
// the address, and the page has its line.
func thePasskeys(h frame.House, r *http.Request) (frame.Show, error) {
	var who api.Whoami
	if err := h.Get("/v1/whoami", nil, &who); err != nil {
		return frame.Show{}, err
	}
	m := made{who: who.Principal}
	q := r.URL.Query()
	if key := strings.TrimSpace(q.Get("key")); key != "" {
		spki, err := base64.StdEncoding.DecodeString(key)
		text := ""
		if err == nil {
			text, err = sshsig.PasskeyText(spki, q.Get("site"))
		}
		if err != nil {
			m.bad = err.Error()
		} else {
			m.line = who.Principal + ` namespaces="` + trust.NamespaceOrder + `" ` + text
		}
	}
	return frame.Show{Title: "Passkeys", Nav: "Approvals",
		Parts: []frame.Part{{ID: "passkeys", Body: passkeysPart(m)}}}, nil
}
