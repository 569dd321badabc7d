package sshsig

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// A question asks if a signature of the message by alice is accepted.
type question struct {
	allowed   string // the file
	armored   []byte
	message   []byte
	namespace string
	at        time.Time
	zone      string // empty: UTC
}

// zones are places with and without summer time, on both sides of the equator and of Greenwich, and
// their rules, by which ssh-keygen knows them also on a machine without files of zones.
var zones = map[string]string{"": "UTC0", "Europe/Berlin": "CET-1CEST,M3.5.0,M10.5.0/3",
	"America/New_York": "EST5EDT,M3.2.0,M11.1.0", "Australia/Sydney": "AEST-10AEDT,M10.1.0,M4.1.0/3",
	"Asia/Kolkata": "IST-5:30"}

// ask returns our verdict, and that of ssh-keygen.
func (k keygen) ask(q question) (ours, theirs error) {
	k.t.Helper()
	place, err := time.LoadLocation(q.zone)
	if err != nil {
		k.t.Fatal(err)
	}
	k.env = []string{"TZ=" + zones[q.zone]}
	k.write("allowed", []byte(q.allowed))
	k.write("sig", q.armored)
	out, err := k.run(q.message, "-Y", "verify", "-f", "allowed", "-I", "alice", "-s", "sig", "-n", q.namespace,
		"-O", "verify-time="+q.at.UTC().Format("20060102150405")+"Z")
	if err != nil {
		theirs = errors.New(out)
	}
	return q.judge(place), theirs
}

// judge returns our verdict.
func (q question) judge(place *time.Location) error {
	a, err := parseAllowed([]byte(q.allowed), place)
	if err != nil {
		return err
	}
	s, err := Parse(q.armored)
	if err != nil {
		return err
	}
	if err := s.Verify(q.namespace, q.message); err != nil {
		return err
	}
	names, why := a.Principals(s.Key, q.namespace, q.at)
	if why == nil && names[0] != "alice" {
		return errors.New("it is the key of " + names[0])
	}
	return why
}

// agree fails unless both have the verdict that is wanted.
func (k keygen) agree(name string, want bool, q question) {
	k.t.Helper()
	ours, theirs := k.ask(q)
	if (ours == nil) != want || (theirs == nil) != want {
		k.t.Errorf("%s: want %v\nours: %v\nssh-keygen: %v", name, want, ours, theirs)
	}
}

// crossCheck holds one good signature, and bad ones made of it, against ssh-keygen.
func (k keygen) crossCheck(key ssh.PublicKey, armored []byte) {
	t := k.t
	t.Helper()
	right, other := "alice "+publicLine(key)+"\n", "alice "+publicLine(signerOf(t, 77).PublicKey())+"\n"
	raw, err := dearmor(armored)
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)-7] ^= 1 // in the signature proper, or in the flags and the counter
	for _, c := range []struct {
		name, allowed, namespace string
		armored, message         []byte
		want                     bool
	}{
		{"good", right, space, armored, message, true},
		{"another namespace", right, space + "x", armored, message, false},
		{"another message", right, space, armored, message[1:], false},
		{"another key", other, space, armored, message, false},
		{"a changed byte", right, space, armor(raw), message, false},
		{"cut", right, space, armored[:len(armored)-10], message, false},
	} {
		k.agree(key.Type()+", "+c.name, c.want, question{allowed: c.allowed, armored: c.armored, message: c.message,
			namespace: c.namespace, at: time.Now()})
	}
}

func TestOpenSSHTakesOurSignaturesAndWeItsOwn(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"ed25519": {"-t", "ed25519"}, "ecdsa256": {"-t", "ecdsa", "-b", "256"}, "ecdsa384": {"-t", "ecdsa", "-b", "384"},
		"ecdsa521": {"-t", "ecdsa", "-b", "521"}, "rsa": {"-t", "rsa", "-b", "3072"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKeygen(t)
			signer := k.makeKey("key", args...)
			armored, err := Sign(signer, space, message)
			if err != nil {
				t.Fatal(err)
			}
			k.crossCheck(signer.PublicKey(), armored)
			for _, hash := range []string{"sha256", "sha512"} {
				name := "message." + hash // it would ask before it writes over a file
				k.write(name, message)
				out, err := k.run(nil, "-q", "-Y", "sign", "-f", "key", "-n", space, "-O", "hashalg="+hash, name)
				if err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				theirs := k.read(name + ".sig")
				k.crossCheck(signer.PublicKey(), theirs)
				if s, err := Parse(theirs); err != nil || s.hash != hash {
					t.Errorf("the hash of %+v, %v, want %s", s, err, hash)
				}
			}
		})
	}
}

// There is no chance in a signature of Ed25519, so both make the same text.
func TestOurTextIsThatOfOpenSSH(t *testing.T) {
	t.Parallel()
	k := newKeygen(t)
	signer := k.makeKey("key", "-t", "ed25519")
	got, err := Sign(signer, space, message)
	if err != nil {
		t.Fatal(err)
	}
	k.write("message", message)
	if out, err := k.run(nil, "-q", "-Y", "sign", "-f", "key", "-n", space, "message"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if want := k.read("message.sig"); !bytes.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestOpenSSHTakesSignaturesOfSecurityKeys(t *testing.T) {
	t.Parallel()
	k := newKeygen(t)
	for _, flags := range []byte{flagPresent, flagPresent | flagVerified} {
		for _, key := range tokens(t, flags) {
			armored, err := Sign(key, space, message)
			if err != nil {
				t.Fatal(err)
			}
			k.crossCheck(key.public, armored)
		}
	}
	// ssh-keygen does not ask for a touch; we do.
	for kind, key := range tokens(t, 0) {
		armored := armor(ssh.Marshal(blobOf(t, key)))
		ours, theirs := k.ask(question{allowed: "alice " + publicLine(key.public), armored: armored, message: message,
			namespace: space, at: time.Now()})
		if theirs != nil {
			t.Errorf("%s: the signature is not made as it should be: %v", kind, theirs)
		}
		says(t, kind, ours, "nobody touched")
	}
}

// Both refuse SHA-1, and neither minds what is in the reserved field.
func TestOpenSSHJudgesOddSignaturesAlike(t *testing.T) {
	t.Parallel()
	k := newKeygen(t)
	signer := k.makeKey("key", "-t", "rsa", "-b", "2048")
	allowed := "alice " + publicLine(signer.PublicKey()) + "\n"
	good := func(b *blob, algorithm string) {
		sig, err := signer.(ssh.AlgorithmSigner).SignWithAlgorithm(rand.Reader, toSign(space, signHash, message), algorithm)
		if err != nil {
			t.Fatal(err)
		}
		b.Signature = ssh.Marshal(sig)
	}
	for name, c := range map[string]struct {
		change func(b *blob)
		want   bool
	}{
		"SHA-512":   {func(b *blob) { good(b, ssh.KeyAlgoRSASHA512) }, true},
		"SHA-256":   {func(b *blob) { good(b, ssh.KeyAlgoRSASHA256) }, true},
		"SHA-1":     {func(b *blob) { good(b, ssh.KeyAlgoRSA) }, false},
		"reserved":  {func(b *blob) { good(b, ssh.KeyAlgoRSASHA512); b.Reserved = "later" }, true},
		"version 2": {func(b *blob) { good(b, ssh.KeyAlgoRSASHA512); b.Version = 2 }, false},
		"sha384":    {func(b *blob) { good(b, ssh.KeyAlgoRSASHA512); b.Hash = "sha384" }, false},
		"longer":    {func(b *blob) { good(b, ssh.KeyAlgoRSASHA512); b.Signature = append(b.Signature, 0) }, false},
	} {
		b := blobOf(t, signer)
		c.change(&b)
		k.agree(name, c.want, question{allowed: allowed, armored: armor(ssh.Marshal(b)), message: message,
			namespace: space, at: time.Now()})
	}
}

// A line that ssh-keygen refuses is refused here, too. All others of the table are refused here only.
func TestOpenSSHRefusesTheSameLines(t *testing.T) {
	t.Parallel()
	k := newKeygen(t)
	signer := signerOf(t, 1)
	armored, err := Sign(signer, "git", message)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range mistakes {
		ours, theirs := k.ask(question{allowed: filled(c.line, signer.PublicKey()) + "\n", armored: armored,
			message: message, namespace: "git", at: at("2025-01-01 12:00:00")})
		if ours == nil || theirs == nil && !c.lenient {
			t.Errorf("%s: ours: %v, ssh-keygen: %v", c.line, ours, theirs)
		}
	}
}

// randomLine returns a line for alice with options by chance, most of them right.
func randomLine(r *mathrand.Rand, key ssh.PublicKey) string {
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	moment := func() string {
		day := fmt.Sprintf("2025%02d%02d", 1+r.IntN(12), 1+r.IntN(28))
		return pick(day, day+fmt.Sprintf("%02d%02d", r.IntN(24), r.IntN(60)), day+"013059") + pick("", "Z")
	}
	var options []string
	if r.IntN(2) == 0 {
		var patterns []string
		for range 1 + r.IntN(3) {
			patterns = append(patterns, pick("", "", "!")+pick("git", "muster-*", "g?t", "*", "*t", "*-run", "muster-????", "x"))
		}
		options = append(options, pick("namespaces", "NameSpaces")+`="`+strings.Join(patterns, ",")+`"`)
	}
	if r.IntN(2) == 0 {
		options = append(options, `valid-after="`+moment()+`"`)
	}
	if r.IntN(2) == 0 {
		options = append(options, `valid-before="`+moment()+`"`)
	}
	r.Shuffle(len(options), func(i, j int) { options[i], options[j] = options[j], options[i] })
	return pick("alice", "alice,bob", " alice") + pick(" ", "\t", "  ") + strings.Join(options, ",") + " " +
		publicLine(key) + pick("", " comment", " \"") + pick("\n", "\r\n")
}

func TestOpenSSHAllowsTheSame(t *testing.T) {
	t.Parallel()
	k := newKeygen(t)
	seed := time.Now().UnixNano()
	r := mathrand.New(mathrand.NewPCG(uint64(seed), 0))
	signer := signerOf(t, 1)
	armored := map[string][]byte{}
	names := []string{"git", "muster-run", "gut", "muster-halt"}
	for _, n := range names {
		made, err := Sign(signer, n, message)
		if err != nil {
			t.Fatal(err)
		}
		armored[n] = made
	}
	taken, places := 0, slices.Sorted(maps.Keys(zones))
	for i := range 300 {
		allowed := randomLine(r, signer.PublicKey())
		if r.IntN(3) == 0 {
			allowed += randomLine(r, signer.PublicKey())
		}
		namespace := names[r.IntN(len(names))]
		q := question{allowed: allowed, armored: armored[namespace], message: message, namespace: namespace,
			at: time.Date(2025, 1, 1, 0, 0, r.IntN(365*24*3600), 0, time.UTC), zone: places[r.IntN(len(places))]}
		ours, theirs := k.ask(q)
		if ours != nil && strings.Contains(ours.Error(), "valid-before is not later") {
			continue // we refuse the whole file, ssh-keygen only this line
		}
		if ours == nil {
			taken++
		}
		if (ours == nil) != (theirs == nil) {
			t.Fatalf("seed %d, round %d: %q for %s in %s at %s\nours: %v\nssh-keygen: %v", seed, i, allowed, namespace,
				q.zone, q.at, ours, theirs)
		}
	}
	if taken < 30 || taken > 270 {
		t.Errorf("%d of 300 are allowed: the lines say little", taken)
	}
}

// The seconds around both ends of each limit, in winter and in summer.
func TestOpenSSHHasTheSameFirstAndLastSecond(t *testing.T) {
	t.Parallel()
	k := newKeygen(t)
	signer := signerOf(t, 1)
	armored, err := Sign(signer, space, message)
	if err != nil {
		t.Fatal(err)
	}
	for zone := range zones {
		place, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		// The last four are around the changes of the clocks in Berlin and in New York.
		for _, text := range []string{"20250115", "202507150930", "20250715093001Z", "202503300230", "202510260230",
			"202503090230", "202511020130"} {
			limit, err := parseTime(`"`+text+`"`, place)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range []struct {
				option string
				late   time.Duration
				want   bool
			}{{"valid-after", -time.Second, false}, {"valid-after", 0, true}, {"valid-before", 0, true},
				{"valid-before", time.Second, false}} {
				q := question{allowed: fmt.Sprintf("alice %s=%q %s\n", c.option, text, publicLine(signer.PublicKey())),
					armored: armored, message: message, namespace: space, at: limit.Add(c.late), zone: zone}
				k.agree(fmt.Sprintf("%s=%s in %s at %s", c.option, text, zone, q.at), c.want, q)
			}
		}
	}
}
