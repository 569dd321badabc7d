package metrics

import "time"

// Repository has the numbers of a repository that configures muster.
type Repository struct {
	Name   string
	Behind bool          // its newest commit is not in force
	Adrift int           // entries that differed from the commit in force; -1: not known
	Age    time.Duration // since it was read; -1: it never was
}

func (s *snapshot) repository(r Repository) {
	s.add("muster_repository_behind", "1 while the newest commit of a repository is not in force, or "+
		"the repository cannot be read.", number(r.Behind), "repository", r.Name)
	if r.Adrift >= 0 {
		s.add("muster_repository_adrift_entries", "Entries that differed from the commit in force at "+
			"the last look, before they were put right.", float64(r.Adrift), "repository", r.Name)
	}
	if r.Age >= 0 {
		s.add("muster_repository_read_age_seconds", "Time since a repository could be read.",
			r.Age.Seconds(), "repository", r.Name)
	}
}
