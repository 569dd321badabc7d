package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"muster/fleet"
)

const (
	// keyFileMax bounds a private key file; the largest RSA key in use has 13 kB.
	keyFileMax = 1 << 20

	// agentKeysMax bounds how many keys of an agent are shown to a host: after
	// its sixth try a host closes the door, and some remember that for minutes.
	agentKeysMax = 5
)

// login is what we have to show to a host.
type login struct {
	user    string
	signers []ssh.Signer
	what    string // names it in errors
	close   func()
}

// login prepares exactly one key if the host names one, else what the agent has.
func (c *Client) login(ctx context.Context, h fleet.Host) (login, error) {
	if h.Key == "" {
		return c.agentLogin(ctx, h.User)
	}
	signer, err := c.keys.load(h.Key)
	if err != nil {
		return login{}, err
	}
	return login{
		user:    h.User,
		signers: []ssh.Signer{signer},
		what:    fmt.Sprintf("key %s (%s)", h.Key, describe(signer.PublicKey())),
		close:   func() {},
	}, nil
}

func (c *Client) agentLogin(ctx context.Context, user string) (login, error) {
	if c.cfg.AgentSocket == "" {
		return login{}, errors.New("the inventory names no key for it and there is no SSH agent: " +
			"set key in the inventory, or start an agent and set SSH_AUTH_SOCK")
	}
	dialer := net.Dialer{Timeout: c.cfg.Auth}
	conn, err := dialer.DialContext(ctx, "unix", c.cfg.AgentSocket)
	if err != nil {
		return login{}, fmt.Errorf("SSH agent: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	closeAgent := func() {
		stop()
		conn.Close()
	}

	// The agent signs at the very end of the login: until then it must answer.
	err = conn.SetDeadline(time.Now().Add(c.cfg.TCP + c.cfg.Handshake + c.cfg.Auth))
	if err != nil {
		closeAgent()
		return login{}, fmt.Errorf("SSH agent: %w", err)
	}
	signers, err := agent.NewClient(conn).Signers()
	if err != nil {
		closeAgent()
		return login{}, fmt.Errorf("SSH agent at %s: %w", c.cfg.AgentSocket, err)
	}
	if len(signers) == 0 {
		closeAgent()
		return login{}, fmt.Errorf("SSH agent at %s has no keys: add one with ssh-add",
			c.cfg.AgentSocket)
	}
	for i := range signers {
		signers[i] = modern(signers[i])
	}
	return login{
		user:    user,
		signers: signers[:min(len(signers), agentKeysMax)],
		what:    fmt.Sprintf("the %d keys of the SSH agent", min(len(signers), agentKeysMax)),
		close:   closeAgent,
	}, nil
}

// keyring keeps private keys that were read, by path. A file that was changed
// is read again, so that a new key does not need a new process.
type keyring struct {
	mu    sync.Mutex
	files map[string]keyFile // guarded by mu
}

type keyFile struct {
	size     int64
	modified time.Time
	signer   ssh.Signer
}

func (k *keyring) load(path string) (ssh.Signer, error) {
	k.mu.Lock()
	defer k.mu.Unlock()

	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("private key: %w", err)
	}
	kept, ok := k.files[path]
	if ok && kept.size == info.Size() && kept.modified.Equal(info.ModTime()) {
		return kept.signer, nil
	}
	signer, err := readKey(path, info)
	if err != nil {
		return nil, err
	}
	if k.files == nil {
		k.files = make(map[string]keyFile)
	}
	k.files[path] = keyFile{size: info.Size(), modified: info.ModTime(), signer: signer}
	return signer, nil
}

func readKey(path string, info fs.FileInfo) (ssh.Signer, error) {
	// Opening a named pipe would wait for its writer, maybe for ever.
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("private key %s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("private key: %w", err)
	}
	defer f.Close()

	pem, err := io.ReadAll(io.LimitReader(f, keyFileMax))
	if err != nil {
		return nil, fmt.Errorf("private key: %w", err)
	}
	signer, err := ssh.ParsePrivateKey(pem)
	var locked *ssh.PassphraseMissingError
	if errors.As(err, &locked) {
		return nil, fmt.Errorf("private key %s has a passphrase: put it into an SSH agent, "+
			"or use a key without", path)
	}
	if err != nil {
		return nil, fmt.Errorf("private key %s cannot be read: %w", path, err)
	}
	return modern(signer), nil
}

// modern makes an RSA key sign with SHA-2 only. The library would fall back to
// SHA-1 for a host that does not say what it accepts.
func modern(s ssh.Signer) ssh.Signer {
	if s.PublicKey().Type() != ssh.KeyAlgoRSA {
		return s
	}
	capable, ok := s.(ssh.AlgorithmSigner)
	if !ok {
		return s
	}
	limited, err := ssh.NewSignerWithAlgorithms(capable,
		[]string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256})
	if err != nil {
		return s
	}
	return limited
}
