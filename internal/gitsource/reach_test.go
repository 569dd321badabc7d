package gitsource_test

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"muster/testkit/gittest"
	"muster/testkit/sshtest"
)

func write(t *testing.T, name, text string, mode os.FileMode) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return file
}

// Over ssh git has the key of the file only, and speaks with a server of known_hosts only.
func TestOverSSHTheServerMustBeKnown(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("a.yaml", "a: 1\n")
	id := r.Commit("one")
	d := sshtest.StartSSHD(t, sshtest.Options{})
	c := copyOf(t, r)
	c.Source.URL = fmt.Sprintf("ssh://%s@%s:%d%s", d.User, d.Address, d.Port, r.Dir)
	c.Source.Key = d.Key
	place := fmt.Sprintf("[%s]:%d ", d.Address, d.Port)
	c.Source.KnownHosts = write(t, "known_hosts", place+d.HostKey+"\n", 0o644)
	if one := fetch(t, c); one.ID != id {
		t.Errorf("fetched %s, want %s", one.ID, id)
	}
	_, other := sshtest.NewKey(t)
	for name, text := range map[string]string{"another key": place + other + "\n", "no key": ""} {
		c.Source.KnownHosts = write(t, "known_hosts", text, 0o644)
		if _, err := c.Fetch(t.Context()); err == nil || !strings.Contains(err.Error(), "Host key verification failed") {
			t.Errorf("%s: %v", name, err)
		}
	}
	c.Source.KnownHosts = write(t, "known_hosts", place+d.HostKey+"\n", 0o644)
	if c.Source.Key, _ = sshtest.NewKey(t); true {
		if _, err := c.Fetch(t.Context()); err == nil || !strings.Contains(err.Error(), "Permission denied") {
			t.Errorf("a key that may not log in: %v", err)
		}
	}
	if err := os.Chmod(c.Source.Key, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Fetch(t.Context()); err == nil || !strings.Contains(err.Error(), "so others can use it") {
		t.Errorf("a key in the open: %v", err)
	}
}

// Over https the password comes from a file, goes to that server only, and is in no message.
func TestOverHTTPSThePasswordIsInAFile(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("a.yaml", "a: 1\n")
	id := r.Commit("one")
	path, err := exec.CommandContext(t.Context(), "git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	backend := &cgi.Handler{Path: filepath.Join(strings.TrimSpace(string(path)), "git-http-backend"),
		Env: []string{"GIT_PROJECT_ROOT=" + r.Dir, "GIT_HTTP_EXPORT_ALL=1"}}
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if strings.HasPrefix(q.URL.Path, "/elsewhere") {
			http.Redirect(w, q, "/.git/info/refs?service=git-upload-pack", http.StatusFound)
			return
		}
		if user, password, ok := q.BasicAuth(); !ok || user != "bot" || password != "hunter2" {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, q)
	}))
	t.Cleanup(srv.Close)
	c := copyOf(t, r)
	c.Source.URL = srv.URL + "/.git"
	c.Source.CA = write(t, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
		Bytes: srv.Certificate().Raw})), 0o644)
	c.Source.Login = write(t, "login", "username=bot\npassword=hunter2\n", 0o400)
	if one := fetch(t, c); one.ID != id {
		t.Errorf("fetched %s, want %s", one.ID, id)
	}
	c.Source.Login = write(t, "login", "username=bot\npassword=hunter3\n", 0o400)
	if _, err := c.Fetch(t.Context()); err == nil || strings.Contains(err.Error(), "hunter") {
		t.Errorf("a wrong password: %v", err)
	}
	c.Source.Login = write(t, "login", "username=bot\npassword=hunter2\n", 0o400)
	c.Source.URL = srv.URL + "/elsewhere"
	if _, err := c.Fetch(t.Context()); err == nil {
		t.Error("a redirect was followed")
	}
	c.Source.URL, c.Source.CA = srv.URL+"/.git", ""
	if _, err := c.Fetch(t.Context()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a server that nobody vouches for: %v", err)
	}
}
