// Package gitsource reads files of one branch of a git repository, from a bare copy in a folder of
// ours. The program git does it, as a process group with limits and an end, without hooks and
// without anybody's configuration. There is never a work tree.
//
// The contents of a repository are hostile: a commit must be signed and descend from an earlier one
// where that is asked for, and its files are plain, small and few, or the commit is refused.
//
// Floor 1: may import internal/files, internal/proc and the ground.
package gitsource
