package passkeys

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"

	"muster/api"
	"muster/server/pages/frame"
	"muster/trust"
)

// formMax bounds the form with a public key, in bytes.
const formMax = 16 << 10

// made has what the page of passkeys shows.
type made struct {
	who  string
	line string // of allowed_signers; empty: none was made now
	bad  string // why there is none
}

func (m made) show() frame.Show {
	return frame.Show{Title: "Passkeys", Nav: "Approvals",
		Parts: []frame.Part{{ID: "passkeys", Body: passkeysPart(m)}}}
}

// thePasskeys shows how one makes a passkey.
func thePasskeys(h frame.House, _ *http.Request) (frame.Show, error) {
	var who api.Whoami
	err := h.Get("/v1/whoami", nil, &who)
	return made{who: who.Principal}.show(), err
}

// showLine shows the line for a passkey that the browser has just made. Its public key comes in a
// form and never in an address: a link from elsewhere could show the key of somebody else as the
// person's own. The door refuses forms from elsewhere.
func showLine(p *frame.Frame, w http.ResponseWriter, r *http.Request) {
	h := p.House(w, r)
	var who api.Whoami
	if err := h.Get("/v1/whoami", nil, &who); err != nil {
		p.Refuse(w, r, h, err)
		return
	}
	m := made{who: who.Principal}
	var err error
	if m.line, err = lineOf(w, r, m.who); err != nil {
		m.bad = err.Error()
	}
	s := m.show()
	if m.bad != "" {
		s.Status = http.StatusUnprocessableEntity
	}
	p.Write(w, r, h, s)
}

func lineOf(w http.ResponseWriter, r *http.Request, person string) (string, error) {
	r.Body = http.MaxBytesReader(w, r.Body, formMax)
	if err := r.ParseForm(); err != nil {
		return "", fmt.Errorf("the form cannot be read: %w", err)
	}
	spki, err := base64.StdEncoding.DecodeString(strings.TrimSpace(r.PostForm.Get("key")))
	if err != nil {
		return "", fmt.Errorf("the public key is no base64: want it as the browser made it: %w", err)
	}
	return trust.PasskeyLine(person, spki, r.PostForm.Get("site"))
}
