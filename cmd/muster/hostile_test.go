package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"muster/cli"
	"muster/testkit/apitest"
)

// poison is appended to every word of a server. JSON cannot contain the bytes of hostile that are
// not UTF-8.
const poison = "\x1b[2J\u202e\u009b\r\nX\u200f<script>"

// idLike matches words that commands read as ids; other words would be refused, not shown.
var idLike = regexp.MustCompile(`^[0-9a-z]{10}(:[\w.-]+)?$`)

// poisoned returns a JSON value with poison in every word that is no instant, id, base64 or name of
// a state, because those decide what is shown.
func poisoned(key string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, one := range v {
			v[k] = poisoned(k, one)
		}
	case []any:
		for i, one := range v {
			v[i] = poisoned(key, one)
		}
	case string:
		_, err := time.Parse(time.RFC3339, v)
		if err != nil && !idLike.MatchString(v) && !strings.Contains("state outcome output", key) {
			return v + poison
		}
	}
	return v
}

// hostileAPI gives the same answers as another server, with poison in all words.
func hostileAPI(t *testing.T, a *apitest.API) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to := httptest.NewRecorder()
		a.Config.Handler.ServeHTTP(to, r)
		text := to.Body.Bytes()
		var v any
		if json.Unmarshal(text, &v) == nil {
			text, _ = json.Marshal(poisoned("", v))
		}
		for k, values := range to.Header() {
			w.Header()[k] = values
		}
		w.Header().Del("Content-Length")
		w.WriteHeader(to.Code)
		io.Copy(w, bytes.NewReader(text))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// harm returns the parts of a text that a terminal obeys or an eye misses.
func harm(text string) string {
	if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsGraphic(r) }); i >= 0 {
		return text[max(0, i-40):min(len(text), i+20)]
	}
	return ""
}

// TestWhatServersSayIsHarmlessInEveryCommand does not go through main, which makes errors harmless:
// TestErrorsAreHarmless does.
func TestWhatServersSayIsHarmlessInEveryCommand(t *testing.T) {
	t.Parallel()
	look, past := hostileAPI(t, apitest.New(t, lookRoutes())), hostileAPI(t, historyAPI(t))
	for url, list := range map[string][]string{
		look: {"tasks", "task " + apitest.ATask, "jobs --task " + apitest.ATask, "job " + apitest.AJob, "cancel " +
			apitest.ATask, "hosts", "nodes",
			"queue", "pause " + apitest.ATask, "resume " + apitest.ATask, "pause 0wcy7y2fb3", "pause --customer acme",
			"resume --zone z2", "halt", "resume --all --reason x", "nodes thaw --zone z9 --reason x", "group ls",
			"group clear g1 --reason x", "limits", "wait " + apitest.ATask, "runbooks", "token ls", "token create alice",
			"health"},
		past: {"history", "history gaps", "report " + apitest.ATask, "report " + apitest.ATask + " --form csv",
			"report " + apitest.ATask + " --form html"},
	} {
		for _, line := range list {
			code, out, words := muster(t, url, strings.Fields(line)...)
			if h := harm(out + words); h != "" {
				t.Errorf("muster %s: harmful: %q", line, h)
			}
			if strings.Contains(out, "<script>") && strings.HasSuffix(line, "html") {
				t.Errorf("muster %s: a script in the page", line)
			}
			if code == cli.ExitUnreachable {
				t.Errorf("muster %s: exit %d, so nothing was shown: %s", line, code, words)
			}
		}
	}
}
