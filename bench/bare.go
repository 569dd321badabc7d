package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"

	"muster/fleet"
	"muster/testkit/sshtest"
)

// bareRole makes this program one of several that share the hosts of a bare loop: what
// it costs to be many processes, as workers are, and nothing else of muster.
const bareRole = "bare"

// serveBare visits each of-th host, from the one with that number on.
func serveBare(args []string) error {
	if len(args) != 5 {
		return fmt.Errorf("%s: want a folder, which, of, at a time, and a command, not %q", bareRole, args)
	}
	var n [3]int
	for i := range n {
		var err error
		if n[i], err = strconv.Atoi(args[1+i]); err != nil {
			return err
		}
	}
	h := &hosts{}
	if err := h.readFiles(args[0]); err != nil {
		return err
	}
	var list []fleet.Host
	for i := n[0]; i < len(h.list); i += n[1] {
		list = append(list, h.list[i])
	}
	// What reading the inventory took is no part of the loop: it is told, and a start waited for.
	spent, err := processorTime(os.Getpid())
	if err != nil {
		return err
	}
	fmt.Println(spent)
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	return sshtest.BareLoop(context.Background(), list, h.key, n[2], args[4]).First
}

// loops is the bare loop on all hosts in several processes, from when they are ready. What
// they took until then is not on the bill.
func (h *hosts) loops(name, dir, cmd string, size nodeSize, b *bill) contender {
	return contender{name, func(ctx context.Context) (float64, error) {
		self, err := os.Executable()
		if err != nil {
			return 0, err
		}
		start, started, err := os.Pipe()
		if err != nil {
			return 0, err
		}
		defer start.Close()
		defer started.Close()
		b.less = 0
		var all []*exec.Cmd
		for i := range size.children {
			c := exec.CommandContext(ctx, self, bareRole, dir, strconv.Itoa(i),
				strconv.Itoa(size.children), strconv.Itoa(size.slots), cmd)
			c.SysProcAttr, c.Stdin, c.Stderr = apart(), start, os.Stderr
			spent, err := begin(c)
			if err != nil {
				return 0, err
			}
			b.less += spent
			all = append(all, c)
		}
		began := time.Now()
		started.Close()
		var errs []error
		for _, c := range all {
			errs = append(errs, c.Wait())
		}
		return perSecond(len(h.list), began), errors.Join(errs...)
	}}
}

// begin starts one of several loops, and tells what it took until it was ready.
func begin(c *exec.Cmd) (spent float64, err error) {
	out, err := c.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := c.Start(); err != nil {
		return 0, err
	}
	_, err = fmt.Fscanln(out, &spent)
	return spent, err
}
