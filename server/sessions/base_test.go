package sessions

import (
	"strings"
	"testing"
)

func TestTheBaseIsWhatABrowserReaches(t *testing.T) {
	t.Parallel()
	site := func(url string, tls bool, wanted, listening string) Site { return Site{url, tls, wanted, listening} }
	for name, c := range map[string]struct {
		site Site
		want string // or the begin of the error
	}{
		"a URL":               {site("https://m.example/", false, "unix:/s", "unix:/s"), "https://m.example"},
		"a port":              {site("", false, "unix:/s,127.0.0.1:0", "unix:/s,127.0.0.1:7070"), "http://127.0.0.1:7070"},
		"a port of IPv6":      {site("", false, "[::1]:0", "[::1]:7070"), "http://[::1]:7070"},
		"a name":              {site("", true, "unix:/s, m.example:70", "unix:/s,192.0.2.1:70"), "https://m.example:70"},
		"all addresses":       {site("", true, "unix:/s,0.0.0.0:7070", "unix:/s,[::]:7070"), "! the name by which"},
		"every address":       {site("", true, ":7070", "[::]:7070"), "! the name by which"},
		"loopback with TLS":   {site("", true, "127.0.0.1:7070", "127.0.0.1:7070"), "! the name by which"},
		"a socket":            {site("", false, "unix:/s:80", "unix:/s:80"), "! add a port to server.listen"},
		"a socket beside TLS": {site("", true, "unix:/s:80", "unix:/s:80"), "! add a port to server.listen"},
	} {
		got, err := c.site.Base()
		if words, wrong := strings.CutPrefix(c.want, "! "); wrong {
			if err == nil || !strings.Contains(err.Error(), words) {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		} else if err != nil || got != c.want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
	for text, good := range map[string]bool{"": true, "https://m.example": true, "https://m.example:1/": true,
		"http://127.0.0.1:1": true, "http://localhost:1": true, "http://[::1]:1": true, "http://m.example": false,
		"https://m.example/x": false, "m.example": false, "ftp://m.example": false, "https://u@m.example": false,
		"https://m.example?x": false, "https://m.example#x": false, "https://": false, ":": false} {
		if err := CheckURL(text); (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestNoPathLeadsAway(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"/": "/", "/tasks?x=1": "/tasks?x=1", "": "", "tasks": "", "//evil": "",
		`/\evil`: "", "/%5cevil": "/%5cevil", "https://evil": "", "/a\nb": "", "/a b": "", "javascript:x": "",
		"/" + strings.Repeat("x", 3000): "", "/ä": ""} {
		if got := ownPath(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// Nothing but what a server wrote opens, and only as what it was written.
func FuzzOpen(f *testing.F) {
	keys := keysOf(f)
	r, _ := newRecord(Record{Kind: Link, Owner: "user:a"})
	right, err := r.text(keys)
	if err != nil {
		f.Fatal(err)
	}
	if _, err := open(keys, Link, r.ID, right); err != nil {
		f.Fatal(err)
	}
	f.Add(string(Link), r.ID, right)
	f.Add(string(Browser), r.ID, right)
	f.Add(string(Link), "aaaaaaaaaaaa", right)
	f.Fuzz(func(t *testing.T, kind, id, text string) {
		_, err := open(keys, Kind(kind), id, text)
		if err == nil && (kind != string(Link) || id != r.ID || text != right) {
			t.Errorf("%q opens as %q under %q", text, kind, id)
		}
	})
}
