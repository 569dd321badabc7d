package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/internal/proc"
	"muster/internal/sdnotify"
	"muster/master"
	"muster/server"
	"muster/server/web"
)

// thisUnit returns this process as systemd has started it; nil if it has not. The environment stays
// as it is: an upgrade in place hands it to the next binary. Children do not get it.
func thisUnit() *sdnotify.Unit {
	return sdnotify.New(sdnotify.Environment{Socket: os.Getenv("NOTIFY_SOCKET"), PID: os.Getpid(),
		WatchdogUsec: os.Getenv("WATCHDOG_USEC"), WatchdogPID: os.Getenv("WATCHDOG_PID")})
}

// A vigil tells systemd that a role serves and lives, as long as something shows that: the turns of
// the master's loop, and the answers of the server to itself. No clock alone says so.
type vigil struct {
	unit   *sdnotify.Unit
	log    hclog.Logger
	secure bool         // the server speaks TLS at its ports
	turned atomic.Int64 // on the boot clock, the last turn of the loop; 0: none yet
}

// seldom is the time between two signs of life if there is no watchdog.
const seldom = time.Hour

// every returns the time between two signs of life: a few fit into the time of the watchdog.
func (v *vigil) every() time.Duration {
	if w := v.unit.Watchdog(); w > 0 {
		return w / 4
	}
	return seldom
}

// tell logs an error of talking to systemd.
func (v *vigil) tell(err error) {
	if err != nil {
		v.log.Warn("systemd does not hear this service", "error", err)
	}
}

// alone returns the Pulse of a master without a server: each turn of the loop is a sign of life.
func (v *vigil) alone() func(master.Sign) time.Duration {
	ready, last := false, time.Duration(0)
	return func(s master.Sign) time.Duration {
		now := proc.Boot()
		v.show(s)
		switch {
		case !ready:
			v.tell(v.unit.Ready())
			ready, last = true, now
		case now-last >= v.every():
			v.tell(v.unit.Alive())
			last = now
		}
		return max(v.every()-(now-last), time.Millisecond)
	}
}

// beside returns the Pulse of a master beside a server: the loop notes the time of its turns.
func (v *vigil) beside() func(master.Sign) time.Duration {
	return func(s master.Sign) time.Duration {
		v.show(s)
		v.turned.Store(int64(proc.Boot()))
		return v.every()
	}
}

// stopping tells systemd that the role ends.
func (v *vigil) stopping() { v.tell(v.unit.Stopping("ends after the work in hand")) }

func (v *vigil) show(s master.Sign) {
	v.tell(v.unit.Status(fmt.Sprintf("%s, %d of %d children at work", s.State, s.Children, s.Limit)))
}

// server gives a sign of life whenever the server has answered itself, until the context is done.
// If there is a master beside it, the loop of the master must turn, too.
func (v *vigil) server(ctx context.Context, srv *server.Server, mastered bool) {
	if v.unit == nil {
		return
	}
	select {
	case <-srv.Ready():
	case <-ctx.Done():
		return
	}
	if !mastered {
		v.tell(v.unit.Status("serves on " + srv.Addr()))
	}
	say, pause := v.unit.Ready, firstPause
	for ctx.Err() == nil {
		err := v.askItself(ctx, srv.Addr())
		if err == nil && mastered {
			err = v.loopTurns()
		}
		switch {
		case err == nil:
			v.tell(say())
			say, pause = v.unit.Alive, v.every()
		case ctx.Err() == nil && pause != firstPause: // else it only begins
			v.log.Error("this service does not serve: systemd is not told that it lives, and ends it soon",
				"error", err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// firstPause is the time between two looks at a service that begins.
const firstPause = 20 * time.Millisecond

// loopTurns returns an error if the loop of the master has not turned for some time.
func (v *vigil) loopTurns() error {
	turned := time.Duration(v.turned.Load())
	switch since := proc.Boot() - turned; {
	case turned == 0:
		return errors.New("the loop of the master has not turned yet")
	case since > 2*v.every():
		return fmt.Errorf("the loop of the master has not turned for %s", since.Round(time.Millisecond))
	}
	return nil
}

// askItself asks a server at each of its places whether it answers. Any answer is one: whether
// Redis or SQL are well is another question, and a restart would mend neither. The request gets to
// no handler, which could wait for them.
func (v *vigil) askItself(ctx context.Context, places string) error {
	ctx, cancel := context.WithTimeout(ctx, v.every())
	defer cancel()
	var errs []error
	for _, place := range strings.Split(places, ",") {
		if err := askAt(ctx, place, v.secure); err != nil {
			errs = append(errs, fmt.Errorf("%s does not answer: %w", place, err))
		}
	}
	return errors.Join(errs...)
}

func askAt(ctx context.Context, place string, secure bool) error {
	network, address, scheme := "tcp", loopback(place), "http"
	if path, is := strings.CutPrefix(place, "unix:"); is {
		network, address = "unix", path
	} else if secure {
		scheme = "https"
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	// The certificate may be for any name, and nothing secret is sent: hence no check of it.
	t := &http.Transport{DialContext: dial, DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer t.CloseIdleConnections()
	at := scheme + "://localhost" + web.HealthPath
	r, err := http.NewRequestWithContext(ctx, http.MethodOptions, at, nil)
	if err != nil {
		return err
	}
	res, err := (&http.Client{Transport: t}).Do(r)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// loopback returns the address by which this machine reaches a listener.
func loopback(place string) string {
	host, port, err := net.SplitHostPort(place)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("localhost", port)
	}
	return place
}
