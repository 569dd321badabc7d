package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Program is one that is run for what it prints.
type Program struct {
	Path string
	Args []string
	Dir  string   // where it runs
	Env  []string // all of its environment
	Most int      // bytes that it may print
	In   []byte   // its standard input; nil: none

	As *syscall.Credential // whose rights it has; nil: ours
}

// Output runs a program and returns what it prints. When ctx ends, or it prints too
// much, it is killed with all that it has started in its process group. The error
// has its last words.
func Output(ctx context.Context, p Program) ([]byte, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cmd := exec.CommandContext(ctx, p.Path, p.Args...)
	cmd.Dir, cmd.Env = p.Dir, p.Env
	if p.In != nil {
		cmd.Stdin = bytes.NewReader(p.In)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: p.As}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // what left the group may hold the pipes
	out := &boundedBuffer{most: p.Most, full: func() {
		cancel(fmt.Errorf("prints more than %d bytes", p.Most))
	}}
	said := &tail{most: 500}
	cmd.Stdout, cmd.Stderr = out, said
	err := cmd.Run()
	if cause := context.Cause(ctx); cause != nil && err != nil {
		err = cause
	}
	if err == nil {
		return out.text.Bytes(), nil
	}
	if words := strings.TrimSpace(strings.ToValidUTF8(string(said.kept), "")); words != "" {
		return nil, fmt.Errorf("%w: %s", err, words)
	}
	return nil, err
}

var errFull = errors.New("too much output")

// boundedBuffer takes so many bytes.
type boundedBuffer struct {
	text bytes.Buffer // not embedded: it would read past the bound by itself
	most int
	full func() // more came
}

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.text.Len()+len(p) > b.most {
		b.full()
		return 0, errFull
	}
	return b.text.Write(p)
}

// tail keeps the last bytes.
type tail struct {
	most int
	kept []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if extra := len(t.kept) - t.most; extra > 0 {
		t.kept = append([]byte(nil), t.kept[extra:]...)
	}
	return len(p), nil
}
