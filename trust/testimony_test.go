package trust_test

import (
	"strings"
	"testing"
	"time"

	"muster/internal/serverkey"
	"muster/trust"
)

// said returns the words of a node.
func said() trust.Testimony {
	return trust.Testimony{Kind: "end", Job: "0000000001:fw1", Token: 7, Output: []byte("7 0 0\nfine\n"),
		Words: []string{"succeeded", "", "0", "", "", "c12", "n1/1"}}
}

// A proof holds for the words that a node has said, and for no others.
func TestAProofIsOfWhatANodeHasSaid(t *testing.T) {
	t.Parallel()
	stamps := func(installation string, first byte) serverkey.Stamps {
		k, err := serverkey.Parse([]byte(serverkey.File(installation, [serverkey.Size]byte{first})))
		if err != nil {
			t.Fatal(err)
		}
		return k.Stamps(serverkey.Results)
	}
	ours, now := stamps("house", 1), time.Date(2026, 11, 28, 4, 0, 0, 0, time.UTC)
	proof := said().Prove(ours, now)
	if len(proof) > 64 || strings.ContainsAny(proof, " ~\n\"") {
		t.Errorf("a proof that scripts cannot pass on, or that is long: %q", proof)
	}
	if token, hash := trust.SaidIn(proof); token != 7 || hash != trust.OutputHash(said().Output) {
		t.Errorf("it names attempt %d and output %s", token, hash)
	}
	cut := func(old, with string) string { return strings.Replace(proof, old, with, 1) }
	for _, x := range []struct {
		name   string
		change func(*trust.Testimony)
		proof  string
		by     serverkey.Stamps
		late   time.Duration
		words  string // empty: it holds
	}{
		{name: "the same words"},
		{name: "a day later", late: 24 * time.Hour},
		{name: "a clock that is behind", late: -time.Minute},
		{name: "another outcome", change: func(s *trust.Testimony) { s.Words[0] = "failed" }, words: "not what a node"},
		{name: "another node", change: func(s *trust.Testimony) { s.Words[6] = "n2/1" }, words: "not what a node"},
		{name: "words that run together", change: func(s *trust.Testimony) {
			s.Words[0], s.Words[1] = "succ", "eeded"
		}, words: "not what a node"},
		{name: "another kind", change: func(s *trust.Testimony) { s.Kind = "settle" }, words: "not what a node"},
		{name: "another job", change: func(s *trust.Testimony) { s.Job = "0000000001:fw2" }, words: "not what a node"},
		{name: "another attempt", change: func(s *trust.Testimony) { s.Token = 8 }, words: "another attempt"},
		{name: "another output", proof: cut("."+trust.OutputHash(said().Output)+".", ".AAAAAAAAAAAAAAAAAAAAAA."),
			words: "not what a node"},
		{name: "another time", proof: "zzzzz" + proof[5:], words: "not what a node"},
		{name: "no proof", proof: "-", words: "no form"},
		{name: "half a proof", proof: proof[:len(proof)-2], words: "no form"},
		{name: "another key", by: stamps("house", 2), words: "a key that is not there"},
		{name: "another installation", by: stamps("barn", 1), words: "not what a node"},
		{name: "long after", late: 8 * 24 * time.Hour, words: "the queue has it since"},
		{name: "before it was said", late: -time.Hour, words: "the queue has it since"},
	} {
		s, by, text := said(), ours, proof
		if x.change != nil {
			x.change(&s)
		}
		if x.by.Make("") != "" {
			by = x.by
		}
		if x.proof != "" {
			text = x.proof
		}
		err := s.Check(by, text, now.Add(x.late))
		if (err == nil) != (x.words == "") || err != nil && !strings.Contains(err.Error(), x.words) {
			t.Errorf("%s: %v, want words with %q", x.name, err, x.words)
		}
	}
	if err := said().Check(ours, "", now); err == nil || !strings.Contains(err.Error(), "no node") {
		t.Errorf("without a proof: %v", err)
	}
	if got := said().Prove(serverkey.Stamps{}, now); got != "" {
		t.Errorf("a node without a key proves %q", got)
	}
}

// A node makes a proof for each job that ends.
func BenchmarkProve(b *testing.B) {
	k, err := serverkey.Parse([]byte(serverkey.File("house", [serverkey.Size]byte{1})))
	if err != nil {
		b.Fatal(err)
	}
	stamps, s := k.Stamps(serverkey.Results), said()
	for b.Loop() {
		s.Prove(stamps, time.Time{})
	}
}
