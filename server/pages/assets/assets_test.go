package assets

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// TestTheListOfFilesIsTrue holds FILES against the files: a file that somebody changed without a
// look at its licence does not get out.
func TestTheListOfFilesIsTrue(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("FILES")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if len(f) != 4 {
			t.Fatalf("%q: want name, version, licence and sha256", line)
		}
		listed[f[0]] = f[3]
	}
	var want strings.Builder
	for name, hash := range hashes {
		if listed[name] != hash {
			fmt.Fprintf(&want, "%s has the sha256 %s, FILES says %q\n", name, hash, listed[name])
		}
		delete(listed, name)
	}
	if want.Len() > 0 || len(listed) > 0 {
		t.Errorf("%sthere are no such files: %v", want.String(), listed)
	}
}

func TestAFileIsFoundByItsHashOnly(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]int{URL("live.js"): 200, "/assets/000000000000/live.js": 404,
		"/assets/live.js": 404, "/assets//live.js": 404, "/assets/x/../assets.go": 404} {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		Serve(w, r)
		if w.Code != want {
			t.Errorf("%s: %d, want %d", path, w.Code, want)
		}
	}
}
