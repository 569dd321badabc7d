package ingress

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"muster/fleet"
)

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// formats writes a value in the ways in which logs and errors do.
func formats(v any) string { return fmt.Sprintf("%v %+v %s %x %q %d", v, v, v, v, v, v) }

const goodFile = `sources:
  - name: rules
    preset: github
    secret_file: /etc/muster/events/rules
    customer: acme
    class: management
    per_minute: 60
    waiting: 100
    remember: 2h
  - {name: alerts, preset: alertmanager, secret_file: /s, customer_at: commonLabels.customer}
`

func TestAFileOfSourcesSaysHowEachIsVerified(t *testing.T) {
	t.Parallel()
	list, err := Parse(fleet.Source{Name: "events.yaml", Data: []byte(goodFile)})
	if err != nil {
		t.Fatal(err)
	}
	one, ok := list.Find("rules")
	bounds := Bounds{60, 100, bytesUsual, 2 * time.Hour}
	if !ok || one.Form.Header != "X-Hub-Signature-256" || one.Class != Management ||
		one.Bounds != bounds || one.Customer != "acme" {
		t.Errorf("rules: %+v", one)
	}
	if two, ok := list.Find("alerts"); !ok || two.Class != Trigger || two.Bounds != usual() {
		t.Errorf("alerts: %+v", two)
	}
	if _, ok := list.Find(SentName); ok || len(list.All()) != 2 {
		t.Errorf("sources: %+v", list.All())
	}
	var none *Sources
	if _, ok := none.Find("rules"); ok || none.All() != nil {
		t.Error("no file has a source")
	}
}

// All mistakes of a file are told at once, each with its line.
func TestAFileOfSourcesWithMistakesIsRefusedWhole(t *testing.T) {
	t.Parallel()
	const bad = `sources:
  - name: rules
    preset: githup
  - name: rules
    preset: github
    secret_file: relative
    secret: inline
    time: X-Time
    tolerance: 2h
  - {name: hand, preset: token, secret_file: /s, hash: sha256}
  - {name: "a b", preset: basic, secret_file: /s, customer: a, customer_at: b}
  - {preset: standard-webhooks, secret_file: /s, id: X-Id}
  - {name: x, preset: hmac, hash: sha1, per_minute: 0, waiting: many, remember: 1s, id: X-Id}
  - {name: y, preset: hmac, header: "X Y", kind_at: "a..b", class: urgent, user: me, tolerance: 1m}
  - {name: z}
  - [z]
`
	_, err := Parse(fleet.Source{Name: "events.yaml", Data: []byte(bad)})
	var wrong fleet.Mistakes
	if !errors.As(err, &wrong) {
		t.Fatalf("error %v", err)
	}
	for _, want := range []string{
		"3: preset: unknown word \"githup\"", "2: a source needs a secret_file", "4: source rules is there",
		"6: secret_file: \"relative\": want the absolute path", "7: unknown key \"secret\"", "9: tolerance: \"2h\"",
		"4: time: the proof of preset github does not cover",
		"10: name hand is that of events", "10: hash and encoding have no effect",
		"11: name \"a b\"", "11: a source has customer and customer_at", "11: preset basic needs a user",
		"12: a source needs a name", "12: id, time and hash of preset standard-webhooks are fixed",
		"13: hash: unknown word \"sha1\"", "13: per_minute: \"0\"", "13: waiting: \"many\"",
		"13: remember: \"1s\"", "13: id: the MAC of preset hmac", "14: header: \"X Y\"", "14: kind_at: path",
		"14: class: unknown word \"urgent\"", "14: user has no effect", "15: a source needs a preset",
		"16: a source is a list: want a mapping",
	} {
		line, text, _ := strings.Cut(want, ": ")
		found := false
		for _, m := range wrong {
			found = found || fmt.Sprint(m.Line) == line && strings.HasPrefix(m.Text, text)
		}
		if !found {
			t.Errorf("no mistake %q in:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "inline") {
		t.Errorf("the error repeats a secret: %v", err)
	}
}
