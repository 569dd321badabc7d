package anchor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/hashicorp/go-hclog"

	"muster/audit"
	"muster/history/ledger"
	"muster/internal/files"
)

const (
	// Duty is the name of the duty to sign checkpoints and to send them.
	Duty = "audit"
	// Every is the time between two rounds.
	Every = time.Second

	// A checkpoint is signed when so many entries are new, or the last one is so old.
	pointEntries = 1000
	pointEvery   = time.Minute

	// The bounds of a batch.
	batchEntries = 500
	batchPoints  = 100
	batchBytes   = 1 << 20
	// batches bounds what a sink gets in one round.
	batches = 20

	pauseFirst = time.Second
	pauseMost  = 5 * time.Minute
)

// Needs has all that an Anchor works with.
type Needs struct {
	Ledger *ledger.Ledger
	Keys   audit.Keyring
	Config Config
	Dir    string // where the server keeps the last checkpoint that it signed
	Host   string // name of this machine, for syslog
	Log    hclog.Logger
	Now    func() time.Time
}

// Anchor signs checkpoints and sends the log to sinks, one round after the other.
type Anchor struct {
	Needs
	sinks   []*sink
	trouble atomic.Pointer[string]
}

// sink is a place that gets the log, with the pauses after failures.
type sink struct {
	Spec
	to    sender
	pause *backoff.ExponentialBackOff
	not   time.Time // before this it is not tried again
}

// New returns an Anchor. An error is a mistake in the configuration.
func New(n Needs) (*Anchor, error) {
	if err := n.Config.Validate(); err != nil {
		return nil, err
	}
	a := &Anchor{Needs: n}
	specs, err := n.Config.specs()
	for _, s := range specs {
		p := backoff.NewExponentialBackOff()
		p.InitialInterval, p.MaxInterval = pauseFirst, pauseMost
		a.sinks = append(a.sinks, &sink{Spec: s, to: n.Config.sender(s, n.Host), pause: p})
	}
	return a, err
}

// Trouble says why no checkpoint is signed; empty: there is no reason, or this server does not
// have the duty.
func (a *Anchor) Trouble() string {
	if t := a.trouble.Load(); t != nil {
		return *t
	}
	return ""
}

// Has reports whether the configuration names a sink.
func (a *Anchor) Has(name string) bool {
	return slices.ContainsFunc(a.sinks, func(s *sink) bool { return s.Text == name })
}

// Sinks returns the number of sinks.
func (a *Anchor) Sinks() int { return len(a.sinks) }

// RunOnce signs a checkpoint if it is time, and sends to each sink what it lacks.
func (a *Anchor) RunOnce(ctx context.Context) error {
	err := a.sign(ctx)
	text := ""
	if err != nil && ctx.Err() == nil {
		text = err.Error()
	}
	a.trouble.Store(&text)
	return errors.Join(err, a.send(ctx))
}

// Leave forgets the trouble: another server has the duty.
func (a *Anchor) Leave() { a.trouble.Store(nil) }

// sign signs a checkpoint, unless the log is not what was signed before.
func (a *Anchor) sign(ctx context.Context) error {
	signer, keys, err := a.Keys()
	if err != nil || signer == nil {
		return err
	}
	newest, err := a.Ledger.NewestPoint(ctx)
	if err != nil {
		return err
	}
	size, err := a.Ledger.Size(ctx)
	if err != nil {
		return err
	}
	if err := a.same(ctx, keys, newest.Note, size); err != nil {
		return err
	}
	now := a.Now()
	if size == newest.Size || size-newest.Size < pointEntries && now.Sub(newest.At) < pointEvery {
		return nil
	}
	if err := a.sound(ctx, keys, newest.Size, size); err != nil {
		return err
	}
	root, err := audit.Root(size, a.Ledger.Hashes(ctx))
	if err != nil {
		return err
	}
	note, err := signer.Checkpoint(audit.Checkpoint{Origin: signer.Origin(), Size: size, Root: root,
		At: audit.TimeOf(now)})
	if err != nil {
		return err
	}
	if err := a.Ledger.AddPoint(ctx, ledger.Point{Size: size, At: now, Note: note}); err != nil {
		return err
	}
	return a.remember(note)
}

// A checkpoint of another log under the same name would make that log as good as this one. So a
// server signs nothing before a person has looked.
const look = ": no checkpoint is signed before a person has looked, with `muster audit verify`"

// same reports whether the log begins as the last checkpoints say: that of the tables, and the one
// that this server has signed itself.
func (a *Anchor) same(ctx context.Context, keys audit.Keys, newest string, size int64) error {
	own, err := files.Read(a.memory(), pemMax)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for from, note := range map[string]string{"the tables": newest, a.memory(): string(own)} {
		if note == "" {
			continue
		}
		c, err := keys.Open(note)
		if err != nil {
			// It is of an earlier key, or of an earlier installation.
			a.Log.Warn("an earlier checkpoint cannot be compared", "of", from, "error", err)
			continue
		}
		if c.Size > size {
			return fmt.Errorf("the audit log has %d entries, and %s has a checkpoint of %d, signed at "+
				"%s%s", size, from, c.Size, c.At.UTC().Format(time.RFC3339), look)
		}
		root, err := audit.Root(c.Size, a.Ledger.Hashes(ctx))
		if err != nil {
			return fmt.Errorf("%w%s", err, look)
		}
		if root != c.Root {
			return fmt.Errorf("the first %d entries of the audit log are others than those of the "+
				"checkpoint in %s, signed at %s%s", c.Size, from, c.At.UTC().Format(time.RFC3339), look)
		}
	}
	return nil
}

// sound examines the entries since the last checkpoint: a signature over entries that no server
// wrote would vouch for them.
func (a *Anchor) sound(ctx context.Context, keys audit.Keys, from, to int64) error {
	return a.Ledger.Each(ctx, from, to, func(r audit.Record) error {
		if r.Leaf == "" || r.Hash != audit.LeafHash([]byte(r.Leaf)).String() {
			return fmt.Errorf("entry %d of the audit log was changed or deleted%s", r.Seq, look)
		}
		// Before the first checkpoint servers had no key.
		if (from > 0 || r.Signature != "") && !keys.Signed([]byte(r.Leaf), r.Signature) {
			return fmt.Errorf("no server of this key has signed entry %d of the audit log%s", r.Seq, look)
		}
		return nil
	})
}

// memory is the file with the last checkpoint that this server has signed.
func (a *Anchor) memory() string { return filepath.Join(a.Dir, "checkpoint") }

func (a *Anchor) remember(note string) error {
	if err := os.MkdirAll(a.Dir, 0o700); err != nil {
		return err
	}
	next := a.memory() + ".next"
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(note)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(next, a.memory())
}

// send brings each sink up to date, as far as it takes it.
func (a *Anchor) send(ctx context.Context) error {
	if len(a.sinks) == 0 {
		return nil
	}
	list, err := a.Ledger.Sinks(ctx)
	if err != nil {
		return err
	}
	had := map[string]ledger.Sent{}
	for _, s := range list {
		had[s.Sink] = s
	}
	var errs []error
	for _, s := range a.sinks {
		if a.Now().Before(s.not) {
			continue
		}
		at := had[s.Text]
		at.Sink = s.Text
		errs = append(errs, a.bring(ctx, s, at))
	}
	return errors.Join(errs...)
}

// bring sends batches until the sink has all, and keeps how far it has come after each.
func (a *Anchor) bring(ctx context.Context, s *sink, at ledger.Sent) error {
	for range batches {
		b, next, err := a.batch(ctx, s, at)
		if err != nil || len(b.Lines) == 0 {
			return err
		}
		if err := s.to.send(ctx, b); err != nil {
			return a.failed(ctx, s, at, err)
		}
		s.pause.Reset()
		next.At, next.Since, next.Trouble = a.Now(), time.Time{}, ""
		if err := a.Ledger.SaveSent(ctx, next); err != nil {
			return err
		}
		if at.Trouble != "" {
			a.Log.Info("a sink of the audit log takes it again", "sink", s.Text)
		}
		at = next
	}
	return nil
}

func (a *Anchor) failed(ctx context.Context, s *sink, at ledger.Sent, why error) error {
	if ctx.Err() != nil {
		return nil
	}
	s.not = a.Now().Add(s.pause.NextBackOff())
	at.Trouble = why.Error()
	if at.Since.IsZero() {
		at.Since = a.Now()
	}
	return errors.Join(fmt.Errorf("sink %s: %w", s.Text, why), a.Ledger.SaveSent(ctx, at))
}

// errFull ends a batch that has enough.
var errFull = errors.New("full")

// batch collects what a sink gets next: entries if it wants them, and checkpoints.
func (a *Anchor) batch(ctx context.Context, s *sink, at ledger.Sent) (b Batch, next ledger.Sent,
	err error) {
	next = at
	bytes := 0
	add := func(l audit.Line) error {
		text, err := json.Marshal(l)
		if err != nil {
			return err
		}
		b.Lines, bytes = append(b.Lines, text), bytes+len(text)
		if bytes >= batchBytes {
			return errFull
		}
		return nil
	}
	if s.Entries {
		err = a.Ledger.Each(ctx, at.Entries, at.Entries+batchEntries, func(r audit.Record) error {
			next.Entries = r.Seq + 1
			return add(audit.Line{Entry: &r})
		})
	}
	if err == nil {
		err = a.Ledger.Points(ctx, at.Checkpoints, batchPoints, func(p ledger.Point) error {
			next.Checkpoints = p.Size
			return add(audit.Line{Checkpoint: p.Note})
		})
	}
	if errors.Is(err, errFull) {
		err = nil
	}
	b.ID = fmt.Sprintf("muster-audit-%d-%d-%d-%d", at.Entries, next.Entries, at.Checkpoints,
		next.Checkpoints)
	return b, next, err
}
