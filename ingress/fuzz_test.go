package ingress

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"testing"

	"muster/fleet"
)

// FuzzParse: no file of sources stops the reader, and what it takes can be verified with.
func FuzzParse(f *testing.F) {
	f.Add([]byte(goodFile))
	f.Add([]byte("sources: [{name: x, preset: hmac, secret_file: /s, hash: sha512}]"))
	f.Add([]byte("sources:\n- &a {name: x}\n- *a\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := Parse(fleet.Source{Name: "f", Data: data})
		if (err == nil) != (list != nil) {
			t.Fatalf("%v and %v", list, err)
		}
		for _, s := range list.All() {
			h := http.Header{}
			h.Set(s.Form.Header, s.Form.Prefix+"00")
			m := messageOf(h, []byte("{}"))
			if why := s.Form.Verify(m, []Secret{[]byte(secretText)}); why == "" {
				t.Fatalf("source %+v takes what nobody has signed", s)
			}
		}
	})
}

// FuzzAccept: of all messages only those of who knows the secret are taken, and none stops us.
func FuzzAccept(f *testing.F) {
	sources := make([]Source, len(recorded))
	for i, c := range recorded {
		sources[i] = sourceOf(f, c.name, c.yaml)
		header, body := requestOf(f, c.name)
		f.Add(uint8(i), header.Get(sources[i].Form.Header), "1795863634", body)
	}
	f.Fuzz(func(t *testing.T, which uint8, proof, other string, body []byte) {
		s := sources[int(which)%len(sources)]
		secret := Secret("another secret than the recorded")
		h := http.Header{}
		for name, value := range map[string]string{s.Form.Header: proof, s.Form.Kind: other,
			s.Form.Time: other, s.Form.ID: other} {
			if name != "" {
				h.Set(name, value)
			}
		}
		if _, err := s.Accept(messageOf(h, body), []Secret{secret}); err == nil {
			t.Fatalf("%s takes what nobody has signed: %q", s.Name, proof)
		}
		if s.Form.Proof != HMAC || s.Form.Hash != "sha256" || s.Form.Encoding != "hex" {
			return
		}
		mac := hmac.New(sha256.New, secret)
		mac.Write(body)
		h.Set(s.Form.Header, s.Form.Prefix+hex.EncodeToString(mac.Sum(nil)))
		d, err := s.Accept(messageOf(h, body), []Secret{secret})
		if err == nil && (!IsID(d.ID) || d.Kind != "" && CheckKind(d.Kind) != nil) {
			t.Fatalf("%+v", d)
		}
		if r := why(err); r == Wrong || r == Unproven && len(body) < BodyMax {
			t.Fatalf("%s refuses what was signed: %s", s.Name, r)
		}
		if _, after, _ := bytes.Cut(body, []byte("{")); err == nil && after == nil && len(body) == 0 {
			t.Fatal("an empty body is an event")
		}
	})
}
