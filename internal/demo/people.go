package demo

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"muster/access"
	"muster/api"
	"muster/cli"
	"muster/internal/local"
	"muster/windows"
)

// This file has the people of a customer and the times that are agreed with it, so that a visitor
// of the demo finds windows to propose and to approve, and work that needs one.

// demoAccess gives dora and erik of acme what a customer has, and the user of the demo all.
const demoAccess = `who:
  - {principal: user:dora, roles: [operator], hosts: customer=acme}
  - {principal: user:erik, roles: [approver], hosts: customer=acme}
`

// demoUpkeep is a runbook that begins in a window only.
const demoUpkeep = `name: upkeep
description: Looks at a host while its customer expects it; begins in an approved window only.
window: required
expect: 10s
repeatable: true
timeout: 1m
steps:
  - name: look
    run: uptime
`

// writePeople writes the file that says who may do what, and returns its path.
func (s *stage) writePeople() (string, error) {
	text := demoAccess
	admins := []string{"root", local.This().User}
	slices.Sort(admins)
	for _, user := range slices.Compact(admins) {
		if name := "os:" + user; access.CheckPrincipal(name) == nil {
			text += fmt.Sprintf("  - {principal: %q, roles: [admin]}\n", name)
		}
	}
	path := filepath.Join(s.dir, "access.yaml")
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// demoTimetable returns the windows and freezes of the customers. No task of the story waits for
// one.
func demoTimetable(now time.Time) string {
	first := now.AddDate(0, 0, 2).Format(time.DateOnly)
	last := now.AddDate(0, 0, 3).Format(time.DateOnly)
	return fmt.Sprintf(`windows:
  - name: acme-nights
    customer: acme
    zone: Europe/Zurich
    start: every day 02:00
    length: 2h
    approval: required
  - name: globex-sundays
    customer: globex
    zone: America/New_York
    start: every Sunday 03:00
    length: 4h
    approval: none
freezes:
  - name: initech-audit
    customer: initech
    zone: UTC
    from: %s
    until: %s
    reason: the auditors are there
`, first, last)
}

// agree puts the windows in force.
func (st *stage) agree(ctx context.Context, s *cli.Session) error {
	body := api.WindowsRequest{Files: []windows.File{{Name: "demo.yaml",
		Content: demoTimetable(time.Now().UTC())}}}
	err := s.Do(ctx, cli.Call{Method: http.MethodPut, Path: "/v1/windows", Body: body,
		Bound: cli.CallTimeout}, nil)
	if err != nil {
		return fmt.Errorf("windows of the demo: %w", err)
	}
	return nil
}
