package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path"
	"strings"
	"time"
	"unicode"

	"golang.org/x/crypto/ssh"
)

// Config sets the deadlines and limits of a [Client]. Every time in it must be positive:
// no wait is unlimited.
type Config struct {
	TCP       time.Duration // to resolve the address and connect
	Handshake time.Duration // from there to the end of the key exchange
	Auth      time.Duration // to log in
	Channel   time.Duration // to open a session, to have a command accepted, to close the session
	Idle      time.Duration // longest silence of a command that sets no own limit
	Drain     time.Duration // how long to wait for output after the end of a command
	Stop      time.Duration // to stop a command and learn its result
	Keepalive time.Duration // interval between requests for a sign of life

	JumpIdle time.Duration // how long an unused connection to a jump host stays open

	// DoorDir is a folder in which the processes of a node coordinate how many of them log in
	// to one jump host at a time. Empty: each process limits only itself.
	DoorDir string

	// OutputMax bounds how much of a command's output is kept, in bytes: half of it
	// for the head, half for the tail.
	OutputMax int

	// RecordDir is the folder in which hosts keep the records of steps, see [Record].
	// Users who may not write there get a folder in their home directory.
	RecordDir string

	// AgentSocket is the path of an SSH agent's socket, for hosts without a key in the
	// inventory. Empty: there is no agent.
	AgentSocket string

	// PassphraseFile is the path of a file whose first line is the passphrase of encrypted
	// private keys. Other users must not be able to read it.
	PassphraseFile string
}

// Default returns the configuration for settings that nobody has changed.
func Default() Config {
	return Config{
		TCP:       10 * time.Second,
		Handshake: 10 * time.Second,
		Auth:      10 * time.Second,
		Channel:   10 * time.Second,
		Idle:      time.Hour, // most commands have a shorter bound
		Drain:     time.Second,
		Stop:      5 * time.Second,
		Keepalive: 15 * time.Second,
		JumpIdle:  30 * time.Second,
		OutputMax: 64 << 10,
		RecordDir: recordDirDefault,
	}
}

// Limits of a Config. A deadline of more than a day is probably a typing error. A server
// can hold 3,000 outputs of the largest OutputMax at once.
const (
	deadlineMax    = 24 * time.Hour
	outputLeastMax = 1 << 10
	outputMostMax  = 16 << 20
)

// Validate returns all mistakes in c.
func (c Config) Validate() error {
	var errs []error
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"tcp", c.TCP}, {"handshake", c.Handshake}, {"auth", c.Auth}, {"channel", c.Channel},
		{"idle", c.Idle}, {"drain", c.Drain}, {"stop", c.Stop},
		{"keepalive", c.Keepalive}, {"jump_idle", c.JumpIdle},
	} {
		if d.value <= 0 || d.value > deadlineMax {
			errs = append(errs, fmt.Errorf("%s = %s: more than 0 and at most %s, no deadline can be "+
				"switched off", d.name, d.value, deadlineMax))
		}
	}
	if c.OutputMax < outputLeastMax || c.OutputMax > outputMostMax {
		errs = append(errs, fmt.Errorf("output_max = %d: %d to %d bytes",
			c.OutputMax, outputLeastMax, outputMostMax))
	}
	if !path.IsAbs(c.RecordDir) || path.Clean(c.RecordDir) != c.RecordDir || c.RecordDir == "/" ||
		strings.IndexFunc(c.RecordDir, unprintable) >= 0 {
		errs = append(errs, fmt.Errorf("record_dir = %q: an absolute path, without \"..\" and a "+
			"slash at its end", c.RecordDir))
	}
	return errors.Join(errs...)
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// Client connects to hosts. It caches private keys, certificates, host keys and connections
// to jump hosts, so one client serves a whole process. It is safe for concurrent
// use.
type Client struct {
	cfg     Config
	keys    files[ssh.Signer]
	certs   files[*ssh.Certificate]
	parsed  parsed
	logins  pacers    // bounds concurrent logins to a host
	doors   nodeDoors // bounds concurrent logins of all processes of this node to a jump host
	bridges bridges

	dial  func(ctx context.Context, network, address string) (net.Conn, error)
	pause func(ctx context.Context, d time.Duration) error
}

// New returns a client, or all mistakes in c.
func New(c Config) (*Client, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	client := &Client{cfg: c, dial: new(net.Dialer).DialContext, pause: pause}
	client.logins = pacers{first: loginsFirst, most: loginsMost}
	client.doors = nodeDoors{dir: c.DoorDir, first: loginsFirst, most: loginsMost,
		limit: c.Handshake + c.Auth, pause: pause}
	client.bridges = bridges{client: client, ways: pacers{first: waysFirst, most: waysMost}}
	return client, nil
}

// RecordDir returns the folder in which hosts keep the records of steps.
func (c *Client) RecordDir() string { return c.cfg.RecordDir }

// Close closes the connections to jump hosts and waits until they are closed. The caller
// must have closed all other connections before. It always returns nil.
func (c *Client) Close() error {
	c.bridges.close()
	return nil
}
