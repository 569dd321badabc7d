package jobs

// HistoryAway says that events cannot be stored in history at the moment.
type HistoryAway struct {
	Since Time   `json:"since"`
	Note  string `json:"note"` // why, when it began
	// Stored is the number of stored entries of each zone's event stream, as Redis counts them;
	// zones where that is not known are left out.
	Stored map[string]int64 `json:"stored"`
}

// Recalled counts what a zone learned from history about jobs that it had forgotten.
type Recalled struct {
	Ended int `json:"ended"` // jobs that had ended
	Lost  int `json:"lost"`  // jobs that had begun: the next worker finds out what ran
}
