// Package plays runs playbooks of Ansible on a node, each for one host.
//
// A play is a process group of its own within limits, with a private folder that is removed at its
// end. When the play is stopped, at its bound, and when the worker dies, all of its processes on
// the node are killed. The caller ends the processes that are left on the host.
//
// Floor 3: may import fleet/remote, internal/proc, worker/playbook.
package plays

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"

	"muster/fleet/remote"
	"muster/internal/proc"
	"muster/worker/playbook"
)

// Config says where playbooks are, and how a node logs in to hosts.
type Config struct {
	Folder         string // of the playbooks; empty: this node runs none
	Dir            string // where private folders are made
	Agent          string // the socket of an SSH agent; may be empty
	PassphraseFile string // may be empty
	OutputMax      int    // bytes kept of what one play says
}

// A Player runs playbooks.
type Player struct{ cfg Config }

// New returns a player.
func New(c Config) *Player { return &Player{c} }

// wordsMax bounds what is kept of the words of ansible-playbook itself, in bytes.
const wordsMax = 8 << 10

var (
	errBound   = errors.New("the playbook did not end within its bound")
	errStopped = errors.New("the playbook was stopped")
)

// Play runs a playbook to its end. The error is a [remote.Error]. Sent says that a task had begun,
// so something may still run on the host after KindTimeout, KindStopped and KindCancelled. findable
// says that playbook.Sweep finds it there.
func (p *Player) Play(ctx context.Context, play playbook.Play) (r remote.Result, findable bool,
	err error) {
	r, sum, err := p.play(ctx, play)
	return r, sum.Findable(), err
}

func (p *Player) play(ctx context.Context, play playbook.Play) (r remote.Result,
	sum playbook.Sum, err error) {
	r.ExitCode = -1
	file, config, err := p.find(play.File)
	if err != nil {
		return r, sum, fault(remote.KindNode, false, err)
	}
	own, err := newFolder(p.cfg.Dir)
	if err != nil {
		return r, sum, fault(remote.KindNode, false, err)
	}
	defer own.remove()
	place := playbook.Place{Dir: own.dir, Agent: p.cfg.Agent, PassphraseFile: p.cfg.PassphraseFile}
	if place.Inventory, err = p.beside(play.Inventory); err != nil {
		return r, sum, fault(remote.KindNode, false, err)
	}
	files, err := play.Files(place)
	if err != nil {
		return r, sum, fault(remote.KindInvalid, false, err)
	}
	if err := own.write(files); err != nil {
		return r, sum, fault(remote.KindNode, false, err)
	}
	out := &output{live: play.Live, most: p.cfg.OutputMax / 2}
	teller, words := playbook.NewTeller(play.Host.Name, out), &output{most: wordsMax / 2}
	began := time.Now()
	run, cancel := bounded(ctx, play)
	defer cancel()
	exit, err := proc.Whole{Name: "ansible-playbook", Args: play.Args(place, file),
		Dir: runsIn(file, config), Env: play.Env(place, config), Litter: own.dir,
		Said: words, Events: teller}.Run(run)
	r.ExitCode, r.Took = exit, time.Since(began)
	sum = teller.Sum()
	if err == nil {
		r.ExitCode, err = sum.Ended(playbook.End{Exit: exit, Words: words.all()})
	}
	if sum.Stats == nil {
		out.add(words.all()) // its mistakes and warnings
	}
	r.Output = out.output()
	return r, sum, explained(err, sum, ctx)
}

// bounded returns a context that ends at the bound of a play and when it is to stop.
func bounded(ctx context.Context, play playbook.Play) (context.Context, func()) {
	ctx, expire := context.WithTimeoutCause(ctx, play.Bound, errBound)
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-play.Stop:
			cancel(errStopped)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(nil)
		expire()
	}
}

// explained returns the error of a play for those who judge it.
func explained(err error, sum playbook.Sum, ctx context.Context) error {
	var away *playbook.AwayError
	var mistake *playbook.MistakeError
	var doubt *playbook.Doubt
	switch {
	case err == nil:
		return nil
	case errors.As(err, &away):
		return fault(remote.KindUnreachable, false, err)
	case errors.As(err, &mistake):
		return fault(remote.KindInvalid, false, err)
	case errors.As(err, &doubt):
		return fault(remote.KindLost, true, err)
	case errors.Is(err, errBound):
		return fault(remote.KindTimeout, sum.Began(), err)
	case errors.Is(err, errStopped):
		return fault(remote.KindStopped, sum.Began(), err)
	case ctx.Err() != nil:
		return fault(remote.KindCancelled, sum.Began(), err)
	}
	return fault(remote.KindNode, sum.Began(), err)
}

func fault(k remote.Kind, sent bool, err error) error {
	return &remote.Error{Op: "ansible", Kind: k, Sent: sent, Err: err}
}

// find returns the path of a playbook, and of the ansible.cfg that holds for it: the nearest above
// it within the folder; empty: there is none.
func (p *Player) find(name string) (file, config string, err error) {
	if p.cfg.Folder == "" {
		return "", "", errors.New("this node runs no playbooks: name their folder as node.playbooks in " +
			"its configuration")
	}
	root, err := os.OpenRoot(p.cfg.Folder)
	if err != nil {
		return "", "", fmt.Errorf("node.playbooks: %w", err)
	}
	defer root.Close()
	info, err := root.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", "", fmt.Errorf("playbook %s is not in %s of this node", name, p.cfg.Folder)
	case err != nil:
		return "", "", fmt.Errorf("playbook %s: %w", name, err)
	case !info.Mode().IsRegular():
		return "", "", fmt.Errorf("playbook %s is no regular file", name)
	}
	for dir := path.Dir(name); ; dir = path.Dir(dir) {
		cfg := path.Join(dir, "ansible.cfg")
		if info, err := root.Stat(cfg); err == nil && info.Mode().IsRegular() {
			config = filepath.Join(p.cfg.Folder, cfg)
			break
		}
		if dir == "." {
			break
		}
	}
	return filepath.Join(p.cfg.Folder, name), config, nil
}

// beside returns the path of an inventory in the folder of playbooks; empty: the play has none.
func (p *Player) beside(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	root, err := os.OpenRoot(p.cfg.Folder)
	if err != nil {
		return "", fmt.Errorf("node.playbooks: %w", err)
	}
	defer root.Close()
	if _, err := root.Stat(name); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("inventory %s is not in %s of this node", name, p.cfg.Folder)
	} else if err != nil {
		return "", fmt.Errorf("inventory %s: %w", name, err)
	}
	return filepath.Join(p.cfg.Folder, name), nil
}

// runsIn returns the folder in which a playbook runs, as people who have it run it.
func runsIn(file, config string) string {
	if config != "" {
		return filepath.Dir(config)
	}
	return filepath.Dir(file)
}

// An output keeps the head and the tail of what is written, by several at once.
type output struct {
	live io.Writer // gets all at once; may be nil
	most int       // bytes of each

	mu      sync.Mutex // guards the fields below
	head    []byte
	tail    []byte
	omitted int64
}

// Write takes a piece. It never fails.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.keep(p)
	if o.live != nil {
		_, _ = o.live.Write(p) // who listens does not matter
	}
	return len(p), nil
}

// add takes a piece, and ends its line.
func (o *output) add(p []byte) {
	if len(p) > 0 && p[len(p)-1] != '\n' {
		p = append(p[:len(p):len(p)], '\n')
	}
	_, _ = o.Write(p)
}

// keep keeps a piece. The caller holds mu.
func (o *output) keep(p []byte) {
	if o.omitted == 0 && len(o.tail) == 0 {
		n := min(len(p), o.most-len(o.head))
		o.head, p = append(o.head, p[:n]...), p[n:]
	}
	o.tail = append(o.tail, p...)
	if over := len(o.tail) - o.most; over > 0 {
		o.omitted += int64(over)
		o.tail = append(o.tail[:0], o.tail[over:]...)
	}
}

func (o *output) output() remote.Output {
	o.mu.Lock()
	defer o.mu.Unlock()
	return remote.Output{Head: o.head, Tail: o.tail, Omitted: o.omitted}
}

func (o *output) all() []byte { return o.output().Bytes() }
