package trust

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"muster/internal/serverkey"
	"muster/jobs"
)

// A Testimony is something that a node says of a job: how it ended, that a step began, why it is
// tried again. The node proves it with its key, and history keeps whether the proof holds.
type Testimony struct {
	Kind  string // an event of the queue: end, settle, step, retry, wait, verify, defer
	Job   jobs.ID
	Token jobs.Token // of the attempt; 0: the proof has it
	Words []string   // all else that the node says, in an order that belongs to the kind

	// Output is the output of the attempt, as the queue stores it. Check does not look at it: nobody
	// may have it any more (see SaidIn).
	Output []byte
}

// proofParts is the number of parts of a proof: time, token, hash of the output and MAC, with dots
// between them. It has letters, digits, dots, - and _ only.
const proofParts = 4

// proofBase is that of the numbers in a proof.
const proofBase = 36

// proofLate is the longest time between a testimony and the moment at which Redis has it: a node
// keeps a result while it does not reach Redis. proofSkew is by how much clocks differ.
const (
	proofLate = Validity
	proofSkew = 5 * time.Minute
)

// Prove returns the proof of a testimony.
func (t Testimony) Prove(s serverkey.Stamps, now time.Time) string {
	at := strconv.FormatInt(now.Unix(), proofBase)
	token := strconv.FormatInt(int64(t.Token), proofBase)
	said := OutputHash(t.Output)
	mac := s.Make(t.parts(at, token, said)...)
	if mac == "" {
		return ""
	}
	return at + "." + token + "." + said + "." + mac
}

// OutputHash returns the hash of an output as a proof has it, cut to 128 bits; empty for none.
func OutputHash(output []byte) string {
	if len(output) == 0 {
		return ""
	}
	sum := sha256.Sum256(output)
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

func (t Testimony) parts(at, token, said string) []string {
	parts := make([]string, 0, 16)
	return append(append(parts, t.Kind, string(t.Job), at, token, said), t.Words...)
}

// Check returns an error unless a node proved a testimony, about the time at which Redis got it.
func (t Testimony) Check(s serverkey.Stamps, proof string, got time.Time) error {
	if proof == "" {
		return errors.New("no node has vouched for it")
	}
	parts := strings.Split(proof, ".")
	if len(parts) != proofParts {
		return errors.New("its proof is of no form that is known here")
	}
	at, token := parts[0], parts[1]
	if err := s.Check(parts[3], t.parts(at, token, parts[2])...); err != nil {
		return err
	}
	seconds, err := strconv.ParseInt(at, proofBase, 64)
	if err != nil {
		return fmt.Errorf("the time of its proof: %w", err)
	}
	if late := got.Sub(time.Unix(seconds, 0)); late < -proofSkew || late > proofLate {
		return fmt.Errorf("a node said it at %s, and the queue has it since %s",
			time.Unix(seconds, 0).UTC().Format(time.RFC3339), got.UTC().Format(time.RFC3339))
	}
	if t.Token != 0 && token != strconv.FormatInt(int64(t.Token), proofBase) {
		return errors.New("its proof is that of another attempt")
	}
	return nil
}

// SaidIn returns the token of the attempt and the hash of its output that a proof names. They are
// true only if the proof holds.
func SaidIn(proof string) (token jobs.Token, said string) {
	parts := strings.Split(proof, ".")
	if len(parts) != proofParts {
		return 0, ""
	}
	n, _ := strconv.ParseInt(parts[1], proofBase, 64)
	return jobs.Token(n), parts[2]
}
