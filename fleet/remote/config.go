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

// Config says how patient a [Client] is. Every time in it must be positive:
// there is no way to wait for ever.
type Config struct {
	TCP       time.Duration // to find the address and be accepted by it
	Handshake time.Duration // from there to the end of the key exchange
	Auth      time.Duration // to log in
	Channel   time.Duration // to open a session, to have a command accepted, to close it
	Idle      time.Duration // longest silence of a command that sets none itself
	Drain     time.Duration // what a command wrote may still come in after its end
	Keepalive time.Duration // between questions "are you there"

	JumpIdle time.Duration // how long a connection to a jump host is kept for the next one

	// DoorDir is a folder in which the processes of a node agree on how many of them log in
	// to one jump host at a time. Empty: each of them knows of itself only.
	DoorDir string

	// OutputMax bounds what is kept of one command's output, in bytes: half of
	// it the head, half of it the tail.
	OutputMax int

	// RecordDir is the folder in which hosts keep the records of steps, see [Record].
	// A user who cannot have it uses one in its own home.
	RecordDir string

	// AgentSocket is the path of an SSH agent's socket, for hosts without a key
	// of their own in the inventory. Empty: there is none.
	AgentSocket string

	// PassphraseFile is the path of a file with the passphrase of private keys that
	// have one, in its first line. Nobody else may be able to read it.
	PassphraseFile string
}

// Default returns the configuration that is used when nothing else is said.
func Default() Config {
	return Config{
		TCP:       10 * time.Second,
		Handshake: 10 * time.Second,
		Auth:      10 * time.Second,
		Channel:   10 * time.Second,
		Idle:      time.Hour, // the bound of a command is mostly shorter
		Drain:     time.Second,
		Keepalive: 15 * time.Second,
		JumpIdle:  30 * time.Second,
		OutputMax: 64 << 10,
		RecordDir: recordDirDefault,
	}
}

// Limits of a Config. A deadline of a day is one that was typed wrongly, and
// with 3,000 outputs in hand the largest OutputMax is what a server can hold.
const (
	deadlineMax    = 24 * time.Hour
	outputLeastMax = 1 << 10
	outputMostMax  = 16 << 20
)

// Validate tells all that is wrong with c.
func (c Config) Validate() error {
	var errs []error
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"tcp", c.TCP}, {"handshake", c.Handshake}, {"auth", c.Auth}, {"channel", c.Channel},
		{"idle", c.Idle}, {"drain", c.Drain}, {"keepalive", c.Keepalive},
		{"jump_idle", c.JumpIdle},
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

// Client connects to hosts. It keeps the private keys, certificates and host keys it
// has read and the connections to jump hosts, so a process needs only one. It is safe
// for concurrent use.
type Client struct {
	cfg     Config
	keys    files[ssh.Signer]
	certs   files[*ssh.Certificate]
	parsed  parsed
	logins  pacers    // how many log in to a host at a time
	doors   nodeDoors // the same of all processes of this node, at jump hosts
	bridges bridges

	dial  func(ctx context.Context, network, address string) (net.Conn, error)
	pause func(ctx context.Context, d time.Duration) error
}

// New returns a client, or all that is wrong with c.
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

// RecordDir is the folder in which hosts keep the records of steps.
func (c *Client) RecordDir() string { return c.cfg.RecordDir }

// Close closes the connections to jump hosts and waits for their end. All that was
// connected must be closed before. It always returns nil.
func (c *Client) Close() error {
	c.bridges.close()
	return nil
}
