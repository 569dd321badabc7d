package rehearse

import (
	"strings"
	"testing"

	"muster/scripts"
)

// The person at a gate is one more who answers.
func TestAGateIsAnsweredByTheCase(t *testing.T) {
	const runbook = `
name: asks
description: asks a person
steps:
  - name: sure
    gate:
      question: is it so?
      timeout: 1h
  - name: do
    run: 'true'
`
	const cases = `
runbook: asks.yaml
cases:
  - name: opened
    want: {steps: [sure, do]}
  - name: refused
    answers: {sure: {exit: 1, output: not today}}
    want: {outcome: failed, class: operator, error: not today, steps: [sure]}
  - name: nobody comes
    answers: {sure: {unreachable: true}}
    want: {outcome: failed, error: nobody opened the gate, steps: []}
`
	book, err := scripts.Parse("asks.yaml", []byte(runbook))
	if err != nil {
		t.Fatal(err)
	}
	suite, err := Parse("asks.test.yaml", []byte(cases))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range suite.Cases {
		got, err := suite.Run(t.Context(), book, c)
		if err != nil || !got.OK {
			t.Errorf("%s: %v: %s", c.Name, err, strings.Join(got.Wrong, "\n"))
		}
	}
}
