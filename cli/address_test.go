package cli

import (
	"strings"
	"testing"
)

func TestParseAddress(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want address
		err  string // a part of the error
	}{
		{text: "http://127.0.0.1:7070", want: address{"http://127.0.0.1:7070", "http://127.0.0.1:7070", ""}},
		{text: "https://muster.example/", want: address{"https://muster.example", "https://muster.example", ""}},
		{text: "https://h/fleet/", want: address{"https://h/fleet", "https://h/fleet", ""}},
		{text: "http://[::1]:7070", want: address{"http://[::1]:7070", "http://[::1]:7070", ""}},
		{text: "unix:///run/api.sock", want: address{"unix:///run/api.sock", "http://localhost", "/run/api.sock"}},
		{text: "unix:/run/api.sock", want: address{"unix:///run/api.sock", "http://localhost", "/run/api.sock"}},
		{text: "", err: "does not start with http://"},
		{text: "127.0.0.1:7070", err: "want unix:///path"},
		{text: "localhost:7070", err: "does not start with"},
		{text: "ftp://h", err: "does not start with"},
		{text: "http://", err: "there is no host"},
		{text: "http://:7070", err: "there is no host"},
		{text: "unix://run/api.sock", err: "absolute"},
		{text: "unix://", err: "absolute"},
		{text: "http://h:port", err: "invalid port"},
		{text: "http://h/?token=x", err: "nothing may follow"},
		{text: "http://h\x1b[2J", err: "invalid"},
		{text: "http://alice:secret@h", err: "MUSTER_TOKEN"},
		{text: "http://alice:sec%zzret@h", err: "MUSTER_TOKEN"},
	} {
		got, err := parseAddress(c.text)
		switch {
		case c.err == "" && (err != nil || got != c.want):
			t.Errorf("parseAddress(%q) = %+v, %v, want %+v", c.text, got, err, c.want)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("parseAddress(%q): error %v, want one with %q", c.text, err, c.err)
		case err != nil && strings.Contains(err.Error(), "sec"):
			t.Errorf("parseAddress(%q): the error repeats the secret: %v", c.text, err)
		}
	}
}

func TestTokenTravelsOnlyEncryptedOrOnThisMachine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		server, token string
		ok            bool
	}{
		{"http://127.0.0.1:7070", "muster_x", true},
		{"http://127.9.9.9:7070", "muster_x", true},
		{"http://[::1]:7070", "muster_x", true},
		{"http://localhost:7070", "muster_x", true},
		{"https://muster.example", "muster_x", true},
		{"unix:///run/api.sock", "muster_x", true},
		{"http://muster.example", "", true},
		{"http://muster.example", "muster_x", false},
		{"http://127.0.0.1.example", "muster_x", false},
		{"https://muster.example", "two words", false},
		{"https://muster.example", "line\nbreak", false},
		{"https://muster.example", "umläut", false},
	} {
		cl, err := NewClient(c.server, c.token)
		if (err == nil) != c.ok {
			t.Errorf("newClient(%q, %q): error %v, want ok = %v", c.server, c.token, err, c.ok)
		}
		if err != nil && strings.Contains(err.Error(), c.token) {
			t.Errorf("the error repeats the token %q: %v", c.token, err)
		}
		if cl != nil {
			cl.Close()
		}
	}
}

func FuzzParseAddress(f *testing.F) {
	for _, s := range []string{"http://h", "unix:///a", "unix:a", "https://[::1%25lo]:1/x", "://", "http://%"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := parseAddress(text)
		if err != nil {
			return
		}
		if again, err := parseAddress(a.Place); err != nil || again != a {
			t.Errorf("parseAddress(%q) is %+v, but its place is read as %+v, %v", text, a, again, err)
		}
	})
}
