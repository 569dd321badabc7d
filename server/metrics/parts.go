package metrics

// A Part is a part of the house of which health says what is wrong.
type Part string

// The parts.
const (
	PartRedis        Part = "redis"
	PartTimes        Part = "timetable"
	PartInventory    Part = "inventory"
	PartForm         Part = "form"
	PartAccess       Part = "access"
	PartUnserved     Part = "nodes"
	PartAgreed       Part = "agreed"
	PartStopped      Part = "stopped"
	PartHistory      Part = "history"
	PartAudit        Part = "audit"
	PartReviews      Part = "reviews"
	PartNotify       Part = "notify"
	PartRepositories Part = "repositories"
)

// Parts lists all parts.
func Parts() []Part {
	return []Part{PartRedis, PartTimes, PartInventory, PartForm, PartAccess, PartUnserved, PartAgreed,
		PartStopped, PartHistory, PartAudit, PartReviews, PartNotify, PartRepositories}
}

// A Stop is a reason for which nothing starts in a zone.
type Stop string

// The reasons.
const (
	StopFreeze  Stop = "freeze"  // Redis may have forgotten something
	StopHistory Stop = "history" // history has not been asked yet what has ended
	StopPause   Stop = "pause"
	StopHalt    Stop = "halt"
)

// Stops lists all reasons.
func Stops() []Stop { return []Stop{StopFreeze, StopHistory, StopPause, StopHalt} }
