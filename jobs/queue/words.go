package queue

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"muster/jobs/queue/form"
	"muster/jobs/queue/hooks"
	"muster/jobs/queue/keys"
)

// meanings maps signs in the answers of Redis to words for the people who run it.
var meanings = []struct{ signs, words string }{
	{"WRONGPASS|NOAUTH|called without any password configured",
		"user or password refused: check redis.url, redis.username, redis.password_file"},
	{"OOM", "maxmemory is reached, nothing new is accepted: give Redis more memory"},
	{"NOPERM", "the ACL of this user lacks a permission"},
	{"READONLY", "this server is a replica now, after a failover: waiting for the one that writes"},
	{"LOADING", "the server is loading its data after a start: waiting for it"},
	{"MASTERDOWN", "this server is a replica that has lost its master: waiting for a failover"},
	{"NOREPLICAS", "fewer replicas than min-replicas-to-write are connected, so the server does not " +
		"write: look at the replicas"},
	{"MISCONF", "the server cannot write its files, so it does not write at all: look at its disk"},
	{"CLUSTERDOWN", "a part of the cluster is down: waiting for its failover"},
	{"MOVED", "another node of the cluster serves this zone now"},
	{"ASK|TRYAGAIN|non local key",
		"the slot of this zone is moving to another node: waiting until it has"},
	{"WRONGTYPE", "a key has another type than muster gives it: somebody else has written there"},
	{"max number of clients", "the server has no connection left: raise its maxclients"},
	{"all sentinels specified", "no Sentinel answers, or none knows redis.sentinel.master"},
	{"i/o timeout", "the server does not answer in time: it is stopped, too busy, or out of reach"},
	{"connection refused", "does Redis run there? redis.url says where it is looked for"},
}

// ErrRedis is wrapped by the errors of Redis, and by the lack of an answer.
var ErrRedis = errors.New("redis")

// Spoiled reports whether err means that a key has another type than muster gives it. Other zones
// can still be read.
func Spoiled(err error) bool { return err != nil && strings.Contains(err.Error(), "WRONGTYPE") }

// Away reports whether err means that the Redis of a zone does not answer, where zones have their
// own. Other zones can still be read.
func Away(err error) bool {
	away := new(hooks.AwayError)
	return errors.As(err, &away)
}

// OneZone reports whether err concerns one zone alone, which is spoiled or has lost its Redis.
func OneZone(err error) bool { return Spoiled(err) || Away(err) }

// Say adds the operation and the server to an error of Redis, in words.
func (q *Conn) Say(op string, err error) error { return q.cfg.say(op, err) }

func (c Config) say(op string, err error) error {
	if err == nil || errors.Is(err, redis.Nil) {
		return err
	}
	text := err.Error()
	if newer := form.Of(text, keys.HubZone); newer != nil {
		return fmt.Errorf("%s: %w", op, newer)
	}
	var proof *tls.CertificateVerificationError
	if errors.As(err, &proof) {
		err = fmt.Errorf("the server's certificate is refused: check redis.tls.ca, "+
			"redis.tls.server_name (%w)", err)
	}
	for _, m := range meanings {
		in := func(sign string) bool { return strings.Contains(text, sign) }
		if slices.ContainsFunc(strings.Split(m.signs, "|"), in) {
			err = fmt.Errorf("%s (%w)", m.words, err)
			break
		}
	}
	return fmt.Errorf("%w %s: %s: %w", ErrRedis, c.Where(), op, err)
}
