package attempt

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/internal/seal"
	"muster/scripts"
)

// This file is about the secret arguments of a job: they are opened before its host is
// touched, reach the host on stdin, and are covered in all that it says.

const (
	// secretMin is the shortest secret, or line of one, that is looked for in what hosts say:
	// shorter ones are found in places where they are none.
	secretMin = 8 // bytes

	// edgeMin is the shortest piece of a secret that is looked for where an output was cut.
	edgeMin = 4 // bytes
)

// errNoSecrets is about a node that cannot open anything.
var errNoSecrets = errors.New("this node has no key: name it as secrets.key")

// hidden are the secrets of a job.
type hidden struct {
	texts map[string]seal.Text // by argument
	veil  veil
}

// A sudoer is a connection that answers when sudo asks for a password.
type sudoer interface{ SudoPassword(password seal.Text) }

// dial connects to a host, whose sudo gets the password that the task has, if it asks.
func (h hidden) dial(ctx context.Context, how dialler, to fleet.Host) (Conn, error) {
	conn, err := how(ctx, to)
	if err != nil {
		return nil, err
	}
	if c, ok := conn.(sudoer); ok {
		c.SudoPassword(h.texts[scripts.BecomePassword])
	}
	return conn, nil
}

// A dialler makes connections, as Doors.Dial does.
type dialler = func(ctx context.Context, h fleet.Host) (Conn, error)

// veil are the texts that are covered, the longest first.
type veil []string

func newVeil(texts map[string]seal.Text) veil {
	words := map[string]bool{}
	for _, text := range texts {
		all := string(text)
		for _, word := range append(strings.Split(all, "\n"), all, strings.TrimSpace(all)) {
			if word = strings.TrimRight(word, "\r"); len(word) >= secretMin {
				words[word] = true
				if quoted := asQuoted(word); len(quoted) >= secretMin {
					words[quoted] = true
				}
			}
		}
	}
	return slices.SortedFunc(maps.Keys(words), func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
}

// asQuoted is a text as it stands in a quotation of its host, in an error.
func asQuoted(text string) string {
	quoted := remote.Quote([]byte(text), 4*len(text)+len(`""…`))
	return strings.TrimSuffix(strings.TrimPrefix(quoted, `"`), `"`)
}

func (v veil) cover(p []byte) []byte {
	for _, word := range v {
		if bytes.Contains(p, []byte(word)) {
			p = bytes.ReplaceAll(p, []byte(word), []byte(seal.Mask))
		}
	}
	return p
}

// output covers what a host said. Where something was left out, a piece of a secret may
// stand on either side.
func (v veil) output(o remote.Output) remote.Output {
	if len(v) == 0 {
		return o
	}
	if o.Omitted == 0 {
		return remote.Output{Head: v.cover(slices.Concat(o.Head, o.Tail))}
	}
	o.Head, o.Tail = v.cover(o.Head), v.cover(o.Tail)
	for _, word := range v {
		for n := len(word) - 1; n >= edgeMin; n-- {
			if bytes.HasSuffix(o.Head, []byte(word[:n])) {
				o.Head = append(slices.Clone(o.Head[:len(o.Head)-n]), seal.Mask...)
			}
			if bytes.HasPrefix(o.Tail, []byte(word[len(word)-n:])) {
				o.Tail = append([]byte(seal.Mask), o.Tail[n:]...)
			}
		}
	}
	return o
}

// quotation covers pieces of secrets where a quotation of a host begins or was cut.
func (v veil) quotation(text string) string {
	for _, word := range v {
		for n := len(word) - 1; n >= edgeMin; n-- {
			text = strings.ReplaceAll(text, word[:n]+`"…`, seal.Mask+`"…`)
			text = strings.ReplaceAll(text, ` "`+word[len(word)-n:], ` "`+seal.Mask)
		}
	}
	return text
}

// fault covers what an error repeats of what a host said.
func (v veil) fault(err error) error {
	var e *remote.Error
	if !errors.As(err, &e) || e.Err == nil {
		return err
	}
	text := e.Err.Error()
	covered := v.quotation(string(v.cover([]byte(text))))
	if covered == text {
		return err
	}
	other := *e
	other.Err = errors.New(covered)
	return &other
}

// A veiledConn covers the secrets of a job in all that its host says.
type veiledConn struct {
	Conn
	veil veil
}

// Run runs a command.
func (c *veiledConn) Run(ctx context.Context, cmd remote.Command) (remote.Result, error) {
	r, err := c.Conn.Run(ctx, cmd)
	r.Output = c.veil.output(r.Output)
	return r, c.veil.fault(err)
}

// Upload puts a file on the host.
func (c *veiledConn) Upload(ctx context.Context, u remote.Upload) error {
	return c.veil.fault(c.Conn.Upload(ctx, u))
}
