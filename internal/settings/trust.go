package settings

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"muster/fleet"
	"muster/internal/local"
	"muster/internal/serverkey"
	"muster/internal/sshsig"
	"muster/trust"
)

// Trust says by whose word a node acts.
type Trust struct {
	Dir string `mapstructure:"dir"` // a folder with the files below; empty: Redis is believed

	// TimesAge is the longest time since a server said that the timetable is in force.
	TimesAge time.Duration `mapstructure:"times_age"`
}

// The files of the folder.
const (
	TrustPolicy  = "policy.yaml"
	TrustSigners = "allowed_signers" // as in ssh-keygen(1)
	TrustNodeKey = "node.key"        // of the nodes, in the form of the key of servers
)

// trustMax bounds each file of the folder.
const trustMax = 1 << 20 // bytes

// TrustRules returns a function that reads whom a node or a server trusts; nil: a node believes
// Redis. As long as the files have not changed, the answer is the same.
func TrustRules(dir string) func() (*trust.Rules, error) {
	if dir == "" {
		return nil
	}
	policy := watched[*trust.Policy]{path: filepath.Join(dir, TrustPolicy), bad: 0o022,
		parse: func(data []byte) (*trust.Policy, error) {
			return trust.ParsePolicy(fleet.Source{Name: filepath.Join(dir, TrustPolicy), Data: data})
		}}
	signers := watched[*sshsig.Allowed]{path: filepath.Join(dir, TrustSigners), bad: 0o022,
		parse: func(data []byte) (*sshsig.Allowed, error) {
			a, err := sshsig.ParseAllowed(data)
			return &a, prefixed(filepath.Join(dir, TrustSigners)+": ", err)
		}}
	keys := watched[*serverkey.Keys]{path: filepath.Join(dir, TrustNodeKey), bad: 0o077,
		parse: func(data []byte) (*serverkey.Keys, error) {
			k, err := serverkey.Parse(data)
			return &k, prefixed(filepath.Join(dir, TrustNodeKey)+": ", err)
		}}
	policy.setting, signers.setting, keys.setting = "trust.dir", "trust.dir", "trust.dir"
	policy.max, signers.max, keys.max = trustMax, trustMax, trustMax

	var mu sync.Mutex
	var last struct {
		policy  *trust.Policy
		signers *sshsig.Allowed
		keys    *serverkey.Keys
		rules   *trust.Rules
	}
	return func() (*trust.Rules, error) {
		mu.Lock()
		defer mu.Unlock()
		p, e1 := policy.get()
		s, e2 := signers.get()
		k, e3 := keys.get()
		if err := errors.Join(e1, e2, e3); err != nil {
			return nil, err
		}
		if last.rules == nil || p != last.policy || s != last.signers || k != last.keys {
			last.policy, last.signers, last.keys = p, s, k
			last.rules = &trust.Rules{Policy: p, Signers: *s, Keys: *k}
		}
		return last.rules, nil
	}
}

// usualTrust returns the usual folder, or nothing if it is not there. A folder without a policy is
// there: whoever removes the file must not have a node believe Redis.
func usualTrust(m local.Machine) string { return present(m.TrustDir()) }

// The bounds of trust.times_age.
const timesAgeMin, timesAgeMax = 3 * time.Minute, 24 * time.Hour

// validate reads the files once: what is wrong with them is better known at the start.
func (t Trust) validate() error {
	var age error
	if t.TimesAge < timesAgeMin || t.TimesAge > timesAgeMax {
		age = fmt.Errorf("trust.times_age = %s: want %s to %s: servers say each minute that the "+
			"timetable is in force", t.TimesAge, timesAgeMin, timesAgeMax)
	}
	rules := TrustRules(t.Dir)
	if rules == nil {
		return age
	}
	_, err := rules()
	if err != nil {
		err = fmt.Errorf("%w\n%s must have %s, %s and %s, as the other nodes have them: copy what is "+
			"missing from one of those", err, t.Dir, TrustPolicy, TrustSigners, TrustNodeKey)
	}
	return errors.Join(age, err)
}
