package remote

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"muster/fleet"
)

func TestOneKeyIsOfferedAndARefusalIsExplained(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var offered []string
	p := peer{auth: func(key ssh.PublicKey) error {
		mu.Lock()
		defer mu.Unlock()
		offered = append(offered, ssh.FingerprintSHA256(key))
		return errors.New("no")
	}}
	h := p.listen(t)
	_, err := mustClient(t, Default()).Connect(t.Context(), h)
	wantKind(t, err, KindAuth, false, `login as "root" with key `+h.Key, "authorized_keys")
	mu.Lock()
	defer mu.Unlock()
	if len(offered) != 1 {
		t.Errorf("%d keys were offered, want 1", len(offered))
	}
}

func TestRSAKeysSignWithSHA2(t *testing.T) {
	t.Parallel()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := peer{}
	h := p.listen(t)
	h.Key = writePrivate(t, private)
	conn := connect(t, h)
	if conn == nil {
		t.Fatal("no connection")
	}
	for _, legacy := range []bool{false, true} {
		l, err := mustClient(t, Default()).login(t.Context(), h.Hop(), legacy)
		if err != nil {
			t.Fatal(err)
		}
		algorithms := l.signers[0].(ssh.MultiAlgorithmSigner).Algorithms()
		if slices.Contains(algorithms, ssh.KeyAlgoRSA) != legacy {
			t.Errorf("legacy %t: the key would sign with %q", legacy, algorithms)
		}
	}
}

func TestKeyFilesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	locked, err := ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ key, words string }{
		{filepath.Join(dir, "missing"), "no such file"},
		{dir, "not a regular file"},
		{pipe, "not a regular file"},
		{file("empty", ""), "it is empty"},
		{file("rubbish", "rubbish"), "it is no private key"},
		{file("locked", string(pem.EncodeToMemory(locked))), "has a passphrase"},
		{"", "there is no SSH agent"},
	} {
		p := peer{handle: func(net.Conn) { t.Error("it was dialled") }}
		h := p.host(t)
		h.Key = test.key
		_, err := mustClient(t, Default()).Connect(t.Context(), h)
		wantKind(t, err, KindKey, false, test.words)
	}
}

func TestAKeyFileIsReadOnceAndAgainWhenItChanges(t *testing.T) {
	t.Parallel()
	var keys files[ssh.Signer]
	load := func(path string) (ssh.Signer, error) {
		return keys.load(path, "private key", ssh.ParsePrivateKey)
	}
	path := clientKey(t)
	first, err := load(path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := load(path)
	if err != nil || again != first {
		t.Errorf("got another key (%v): the file was read twice", err)
	}
	text, err := os.ReadFile(clientKey(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	// The clock of a file system is coarse.
	if err := os.Chtimes(path, time.Time{}, time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	changed, err := load(path)
	if err != nil || changed == first {
		t.Errorf("got the old key (%v): the file was not read again", err)
	}
}

func TestHostsWithoutKeyUseTheAgent(t *testing.T) {
	t.Parallel()
	ring := agent.NewKeyring()
	socket := serveAgent(t, ring)
	config := Default()
	config.AgentSocket = socket
	p := peer{}
	h := p.listen(t)
	h.Key = ""

	_, err := mustClient(t, config).Connect(t.Context(), h)
	wantKind(t, err, KindKey, false, "has no keys: add one with ssh-add")

	addKeys(t, ring, 1)
	conn, err := mustClient(t, config).Connect(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()

	config.AgentSocket = filepath.Join(t.TempDir(), "gone")
	_, err = mustClient(t, config).Connect(t.Context(), h)
	wantKind(t, err, KindKey, false, "SSH agent", "no such file")
}

func TestAgentsWithManyKeysShowOnlySome(t *testing.T) {
	t.Parallel()
	ring := agent.NewKeyring()
	addKeys(t, ring, agentKeysMax+3)
	config := Default()
	config.AgentSocket = serveAgent(t, ring)
	var mu sync.Mutex
	offered := make(map[string]bool)
	p := peer{auth: func(key ssh.PublicKey) error {
		mu.Lock()
		defer mu.Unlock()
		offered[ssh.FingerprintSHA256(key)] = true
		return errors.New("no")
	}}
	h := p.listen(t)
	h.Key = ""
	_, err := mustClient(t, config).Connect(t.Context(), h)
	wantKind(t, err, KindAuth, false, "the 5 keys of the SSH agent")
	mu.Lock()
	defer mu.Unlock()
	if len(offered) != agentKeysMax {
		t.Errorf("%d keys were offered, want %d", len(offered), agentKeysMax)
	}
}

func addKeys(t *testing.T, ring agent.Agent, n int) {
	t.Helper()
	for range n {
		text, err := os.ReadFile(clientKey(t))
		if err != nil {
			t.Fatal(err)
		}
		private, err := ssh.ParseRawPrivateKey(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := ring.Add(agent.AddedKey{PrivateKey: private}); err != nil {
			t.Fatal(err)
		}
	}
}

// serveAgent serves keys on a unix socket and returns its path.
func serveAgent(t *testing.T, ring agent.Agent) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "agent") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer nc.Close()
				_ = agent.ServeAgent(ring, nc)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		conns.Wait()
		os.RemoveAll(dir)
	})
	return path
}

// A key that others can read is refused, as ssh does, because they could log in everywhere.
func TestAPrivateKeyThatOthersCanReadIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, refused := range map[os.FileMode]bool{0o600: false, 0o400: false, 0o644: true, 0o640: true, 0o602: true} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		c := &Client{}
		_, err := c.keyLogin(fleet.Hop{Key: path})
		want := fmt.Sprintf("private key %s has mode %04o, so others can use it: chmod 600 %s", path, mode, path)
		if err == nil || (err.Error() == want) != refused {
			t.Errorf("mode %04o: %v, refused %v wanted", mode, err, refused)
		}
	}
}

func TestWhatIsNoPrivateKeyIsNamed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":        "it is empty",
		"garbage": "it is no private key: want what ssh-keygen writes",
		"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ me": "" +
			"it is a public key: name the private one",
		"-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\n": "it cannot be read, is it whole?",
	} {
		if _, err := parseKey([]byte(text), ""); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.20q: %v, want %s", text, err, want)
		}
	}
}
