package cli

import (
	"regexp"
	"strings"
)

// flagsOf maps a location in a request of the API to the text in front of its mistake on the
// command line: the flag that it came from, or nothing if the message names the place.
var flagsOf = map[string]string{
	"":            "",
	"body":        "",
	"body.id":     "--id: ",
	"body.origin": "--origin: ", "body.take_from": "--take-from: ",
	"body.runbook": "", "body.trigger": "", // the message names it
	"body.only":         "", // likewise
	"body.on":           "--on: ",
	"body.args":         "--arg: ",
	"body.files":        "--arg-file: ",
	"body.at":           "--at: ",
	"body.expire":       "--expire: ",
	"body.expect":       "--expect: ",
	"body.accept":       "--accept: ",
	"body.as":           "--as: ",
	"body.reason":       "--reason: ",
	"body.words":        "--reason: ",
	"body.owner":        "--owner: ",
	"body.life":         "--expires: ",
	"body.scope":        "", // the message names the verb, the runbook or the selector
	"query.on":          "selector: ",
	"query.of":          "", // the message names what it wants
	"path.task":         "",
	"path.job":          "",
	"body.supersedes":   "--supersedes: ",
	"body.signature":    "--key: ",
	"body.passkey":      "passkey: ",
	"body.outcomes":     "--outcome: ",
	"body.skip_missing": "--skip-missing: ",
	"path.customer":     "--customer: ",
	"body.customer":     "--customer: ",

	"body.from":    "--from: ",
	"body.until":   "--until: ",
	"body.starts":  "--start: ",
	"query.from":   "--from: ",
	"query.to":     "--to: ",
	"query.count":  "--count: ",
	"query.cursor": "--cursor: ",

	"body.rollout":                "",
	"body.rollout.staged":         "--staged: ",
	"body.rollout.roll_back":      "--roll-back: ",
	"body.max_failed":             "--max-failed: ",
	"body.wave":                   "--wave: ",
	"body.rollout.max_failed":     "--max-failed: ",
	"body.rollout.unreachable_ok": "--unreachable-ok: ",
	"body.rollout.breaker":        "--breaker: ",
	"body.rollout.canary":         "--canary: ",
	"body.rollout.waves":          "--waves: ",
	"body.rollout.soak":           "--soak: ",
	"body.rollout.gate":           "--gate: ",
	"body.rollout.health":         "--health: ",
	"body.rollout.health_args":    "--health-arg: ",

	"path.zone":  "--zone: ",
	"path.group": "",

	"body.skip_closed": "--skip-closed: ",

	"body.priority": "--priority: ",
	"body.name":     "", // the messages name them
	"body.secrets":  "",
	"body.jobs":     "",
	"body.hosts":    "",
	"path":          "",
	"path.chain":    "",
	"path.host":     "",
	"path.node":     "",
	"body.start":    "", // the message names it
	"path.sum":      "",
}

// asked is a request of a command, as far as it decides how the command names a mistake.
type asked struct{ path string }

// place returns the text in front of a mistake at a location of the request. Some commands have no
// flag for the location, because they take the value from a file or an argument.
func (a asked) place(location string) string {
	one, schedules := strings.CutPrefix(a.path, "/v1/schedules/")
	schedule, run := strings.CutSuffix(one, "/run")
	switch {
	case schedules && run && location != "body.as" && location != "body":
		// The mistake is in the file of the schedule, which has fields of these names.
		field := strings.TrimPrefix(strings.TrimPrefix(location, "body."), "rollout.")
		return "schedule " + Cell(schedule) + ", " + Cell(field) + ": "
	case location == "body.files":
		for _, file := range []string{"apply", "schedules", "windows", "freezes", "approvals"} {
			if strings.HasPrefix(a.path+"/", "/v1/"+file+"/") {
				return "" // the message names the file, or the thing
			}
		}
	case location == "body.on" && strings.HasPrefix(a.path, "/v1/hosts/"):
		return place("query.on")
	}
	return place(location)
}

// listItem matches a position in a list, as in body.outcomes[1].
var listItem = regexp.MustCompile(`\[\d+\]$`)

// place returns the flag, or other text, that most commands have for a location of a request.
func place(location string) string {
	location = listItem.ReplaceAllString(location, "")
	if flag, ok := flagsOf[location]; ok {
		return flag
	}
	// Each remaining part of a query is a flag of the same name.
	if name, is := strings.CutPrefix(location, "query."); is && !strings.ContainsAny(name, ".[") {
		return "--" + strings.ReplaceAll(Cell(name), "_", "-") + ": "
	}
	return Cell(location) + ": "
}
