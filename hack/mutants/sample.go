package main

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// sampled are the changes of an area, in the order in which they are tested. Changes that do not compile are not counted.
type sampled struct {
	area    area
	mutants []mutant
}

// sampleOf returns the changes of each area in a random order. The position of a change depends only on the seed and the change itself, so
// the order stays the same if other code changes.
func sampleOf(root string, seed uint64) (sample []sampled, err error) {
	for _, a := range areas() {
		s := sampled{area: a}
		err := filepath.WalkDir(filepath.Join(root, a.folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.IsDir() {
				return err
			}
			relative, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			if filepath.ToSlash(relative) != a.folder && !a.below {
				return filepath.SkipDir
			}
			found, err := mutantsOf(root, relative)
			s.mutants = append(s.mutants, found...)
			return err
		})
		if err != nil {
			return nil, err
		}
		place := func(m mutant) string { return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%d %s", seed, m.Key))) }
		slices.SortFunc(s.mutants, func(a, b mutant) int { return cmp.Compare(place(a), place(b)) })
		sample = append(sample, s)
	}
	return sample, nil
}

// choose returns the areas whose names contain the text.
func choose(sample []sampled, text string) (chosen []sampled, err error) {
	for _, s := range sample {
		if strings.Contains(s.area.name, text) {
			chosen = append(chosen, s)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no area has a name with %q in it", text)
	}
	return chosen, nil
}
