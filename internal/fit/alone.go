package fit

import (
	"context"
	"fmt"
	"time"

	"muster/internal/settings"
	"muster/jobs/queue"
	"muster/jobs/queue/keys"
	"muster/jobs/queue/wipe"
)

// saidWithin is the age up to which the word of a server shows that it works. Servers say once a
// minute that their timetable is in force, and clocks differ.
const saidWithin = 3 * time.Minute

// Alone refuses a Redis in which the servers of another installation work: each would publish its
// hosts in place of those of the other, and nodes would take jobs of the other and end them as
// failed. It guards against mistakes, not against attackers.
func Alone(ctx context.Context, s settings.Settings, q *queue.Conn, as keys.Role) error {
	own, setting := installation(s, as)
	if own == "" {
		return nil
	}
	other, at, err := wipe.New(q).Said(ctx)
	if err != nil || other == "" || other == own || time.Since(at).Abs() > saidWithin {
		return nil // what cannot be read is reported by those who need it
	}
	return fmt.Errorf("redis %s belongs to installation %q, whose servers said %s ago that they "+
		"work, and %s is of installation %q: correct redis.url, or %s. Servers that have ended count "+
		"for %s. Nothing was written", q.Config().Where(), other,
		time.Since(at).Abs().Round(time.Second), setting, own, setting, saidWithin)
}

// installation returns the name of the installation that the keys of a role are of, and the setting
// that names them. An error is reported by those who need the keys.
func installation(s settings.Settings, as keys.Role) (name, setting string) {
	if as == keys.RoleServer {
		k, err := settings.ServerKeys(s.Server.Key)()
		if err != nil {
			return "", ""
		}
		return k.Installation(), "server.key"
	}
	rules := settings.TrustRules(s.Keys.Trust.Dir)
	if rules == nil {
		return "", ""
	}
	r, err := rules()
	if err != nil {
		return "", ""
	}
	return r.Keys.Installation(), "trust.dir"
}
