package apitest

// SharedQueue is the queue of a zone that two tasks share.
const SharedQueue = `{"zones": [{"zone": "default", "queued": 2976, "again": 32, "due": 2976,
	"oldest": "2026-11-21T10:00:00.000Z", "overdue": 12, "tasks": 11,
	"shares": [
		{"task": "0wcy7y2fb2", "operator": "alice", "priority": "normal", "due": "2026-11-21T10:00:00.000Z",
		 "waiting": 2972, "running": 28, "total": 3000},
		{"task": "0wcy7y2fb3", "operator": "b\u001bob", "priority": "high", "due": "2026-11-21T10:00:01.000Z",
		 "waiting": 4, "running": 0, "total": 4}],
	"reordered": {"at": "2026-11-21T10:00:08.000Z", "seconds": 0.25, "moved": 2990, "by": "n1/3",
		"end": "met", "next": "2026-11-21T10:00:18.000Z"}}]}`
