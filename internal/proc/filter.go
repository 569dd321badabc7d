package proc

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"time"
)

// Find returns the path of a program that is in a folder of PATH. An error names what is missing.
func Find(name string) (string, error) { return exec.LookPath(name) }

// Filter gives bytes to a program and returns what it prints; said hears its other words at once.
// The program stays in the process group of its caller, unlike that of Output, so that it can ask
// the person at the terminal for a password. It is killed when ctx ends or it prints too much.
func Filter(ctx context.Context, p Program, in []byte, said io.Writer) ([]byte, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cmd := exec.CommandContext(ctx, p.Path, p.Args...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stderr = p.Dir, p.Env, bytes.NewReader(in), said
	cmd.WaitDelay = time.Second // what it has started may hold the pipes
	out := &boundedBuffer{most: p.Most, full: func() {
		cancel(fmt.Errorf("prints more than %d bytes", p.Most))
	}}
	cmd.Stdout = out
	err := cmd.Run()
	if cause := context.Cause(ctx); cause != nil && err != nil {
		err = cause
	}
	if err != nil {
		return nil, err
	}
	return out.text.Bytes(), nil
}
