package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"muster/cli"
	"muster/internal/proc"
	"muster/internal/settings"
	"muster/jobs/queue/keys"
	"muster/master"
)

// vital holds the values in which two binaries must agree if one will take over the children of the
// other. The binary under trial prints them; a key that an older one lacks counts as empty.
type vital struct {
	State int    `json:"state"` // format of the handed over state
	Node  string `json:"node"`
	Dir   string `json:"dir"`
	Redis string `json:"redis"` // digest of redis.url, which may hold a password
}

func vitalOf(s settings.Settings) vital {
	sum := sha256.Sum256([]byte(s.Redis.URL))
	return vital{State: master.StateFormat, Node: s.Node.Name, Dir: s.Node.Dir,
		Redis: hex.EncodeToString(sum[:8])}
}

// succeeded returns why next cannot take over.
func (v vital) succeeded(next vital) error {
	var errs []error
	same := func(what string, old, new any) {
		if old != new {
			errs = append(errs, fmt.Errorf("%s changes from %v to %v: only a restart can do that",
				what, old, new))
		}
	}
	same("the format of the state", v.State, next.State)
	same("node.name", v.Node, next.Node)
	same("node.dir", v.Dir, next.Dir)
	if v.Redis != next.Redis {
		errs = append(errs, errors.New("redis.url changes: only a restart can do that"))
	}
	return errors.Join(errs...)
}

// checkMaster is the trial of a new binary: it makes each step of a master's start that can fail,
// except for those that can fail because of Redis.
func checkMaster(out io.Writer, f *roleFlags) error {
	b, err := ownBinary(keys.RoleNode)
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	s, err := f.read()
	if err != nil {
		return err
	}
	c, err := b.config(s)
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	if err := errors.Join(c.Validate(), proc.OwnDir(c.Dir)); err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	return json.NewEncoder(out).Encode(vitalOf(s))
}

// try starts the binary that now lies at the path with the arguments of this one, so that it checks
// whether it could work with them.
func (b binary) try(ctx context.Context) error {
	out, err := proc.Try(ctx, b.path, slices.Concat(os.Args[1:], []string{"--check"})...)
	if err != nil {
		return err
	}
	var next vital
	if err := json.Unmarshal(out, &next); err != nil {
		return fmt.Errorf("%s: its check says %.100q", b.path, out)
	}
	return b.vital.succeeded(next)
}

// beforeEnv names the variable in which a binary tells the next one its vital values. They change
// with a configuration that somebody edits between the trial and the exec.
const beforeEnv = "MUSTER_BEFORE"

// before returns the vital values of the binary in whose place this one stands, and unsets the
// variable; nil: there was none, or it did not say them.
func before() *vital {
	text := os.Getenv(beforeEnv)
	os.Unsetenv(beforeEnv)
	var v vital
	if json.Unmarshal([]byte(text), &v) != nil {
		return nil
	}
	return &v
}

// mendPause is the time between two readings of a configuration that somebody must correct.
const mendPause = time.Second

// takeOver opens the role of a master with working children. The trial has seen a good
// configuration; if it was spoiled since, takeOver waits for a correction. A configuration of
// another Redis or node is spoiled, too: the children work for those of the binary before.
func takeOver(ctx context.Context, f *roleFlags, before *vital) (*role, error) {
	for said := ""; ; {
		r, err := f.openLazy()
		if err == nil && before != nil {
			if err = before.succeeded(vitalOf(r.Settings)); err != nil {
				r.close()
			}
		}
		if err == nil {
			return r, nil
		}
		if said != err.Error() {
			said = err.Error()
			newLogger(settings.Log{Level: "info"}, "master").Error("the upgrade waits for a configuration "+
				"without mistakes; the children work on", "error", err)
		}
		_ = thisUnit().Alive() // it works by waiting, and there is no log yet
		select {
		case <-time.After(mendPause):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// exec replaces this binary by the other one. In between, HUP and USR2 must not end the process,
// which is their default.
func (b binary) exec(keep []*os.File) error {
	signal.Ignore(syscall.SIGHUP, syscall.SIGUSR2)
	mine, err := json.Marshal(b.vital)
	if err == nil {
		err = proc.Exec(b.path, os.Args, append(os.Environ(), beforeEnv+"="+string(mine)), keep)
	}
	b.listen()
	return err
}
