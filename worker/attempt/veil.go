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

// This file covers the secret arguments of a job. An attempt opens them before it touches the host,
// sends them to the host on stdin, and covers them in all output of the host.

const (
	// secretMin is the length of the shortest secret, or line of one, that is covered in output.
	// A shorter text also stands in places where it is no secret.
	secretMin = 8 // bytes

	// edgeMin is the length of the shortest piece of a secret that is covered where an output was
	// cut.
	edgeMin = 4 // bytes
)

// errNoSecrets says that this node cannot open secrets.
var errNoSecrets = errors.New("this node has no key: name it as secrets.key")

// secrets holds the opened secrets of a job.
type secrets struct {
	texts map[string]seal.Text // by argument
	veil  veil
}

// A sudoer is a connection that answers when sudo asks for a password.
type sudoer interface{ SudoPassword(password seal.Text) }

// dial connects to a host, whose sudo gets the password that the task has, if it asks.
func (h secrets) dial(ctx context.Context, how dialler, to fleet.Host) (Conn, error) {
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

// A veil holds the texts to cover, the longest first.
type veil []string

// newVeil returns the veil for secrets: it covers their lines, also in the form of quotations.
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

// asQuoted returns a text in the form that it has in an error which quotes the host.
func asQuoted(text string) string {
	quoted := remote.Quote([]byte(text), 4*len(text)+len(`""…`))
	return strings.TrimSuffix(strings.TrimPrefix(quoted, `"`), `"`)
}

// cover replaces each of the texts by a mask.
func (v veil) cover(p []byte) []byte {
	for _, word := range v {
		if bytes.Contains(p, []byte(word)) {
			p = bytes.ReplaceAll(p, []byte(word), []byte(seal.Mask))
		}
	}
	return p
}

// coverOutput covers the output of a host. On either side of a gap there may be a piece of a
// secret.
func (v veil) coverOutput(o remote.Output) remote.Output {
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

// coverQuotation covers pieces of secrets where a quotation of a host begins or was cut.
func (v veil) coverQuotation(text string) string {
	for _, word := range v {
		for n := len(word) - 1; n >= edgeMin; n-- {
			text = strings.ReplaceAll(text, word[:n]+`"…`, seal.Mask+`"…`)
			text = strings.ReplaceAll(text, ` "`+word[len(word)-n:], ` "`+seal.Mask)
		}
	}
	return text
}

// coverError covers the words of a host that an error repeats.
func (v veil) coverError(err error) error {
	var e *remote.Error
	if !errors.As(err, &e) || e.Err == nil {
		return err
	}
	text := e.Err.Error()
	covered := v.coverQuotation(string(v.cover([]byte(text))))
	if covered == text {
		return err
	}
	other := *e
	other.Err = errors.New(covered)
	return &other
}

// A veiledConn covers the secrets of a job in all output of its host.
type veiledConn struct {
	Conn
	veil veil
}

// Run runs a command.
func (c *veiledConn) Run(ctx context.Context, cmd remote.Command) (remote.Result, error) {
	r, err := c.Conn.Run(ctx, cmd)
	r.Output = c.veil.coverOutput(r.Output)
	return r, c.veil.coverError(err)
}

// Upload puts a file on the host.
func (c *veiledConn) Upload(ctx context.Context, u remote.Upload) error {
	return c.veil.coverError(c.Conn.Upload(ctx, u))
}
