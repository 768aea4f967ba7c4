package main

import (
	"fmt"
	"go/token"
	"maps"
)

// names are the names of packages and variables in a test.
type names struct {
	imports map[string]string // the name of each package, by its path
	taken   map[string]bool
}

func newNames() *names {
	n := &names{imports: map[string]string{}, taken: map[string]bool{}}
	for _, name := range []string{"p", "mgr", "err", "t", "obj", "scheme", "actions", "manifest", "content"} {
		n.taken[name] = true
	}
	return n
}

// use returns the name of an imported package.
func (n *names) use(imported, name string) string {
	if n.imports[imported] == "" {
		n.imports[imported] = n.unique(name)
	}
	return n.imports[imported]
}

// unique returns a name that nothing else has.
func (n *names) unique(name string) string {
	own := name
	for i := 2; n.taken[own] || token.IsKeyword(own); i++ {
		own = fmt.Sprintf("%s%d", name, i)
	}
	n.taken[own] = true
	return own
}

// remember returns a function that frees the names of variables that were taken since. Call it at the end of their scope. The names of
// packages stay taken.
func (n *names) remember() (forget func()) {
	taken := maps.Clone(n.taken)
	return func() {
		n.taken = taken
		for _, name := range n.imports {
			n.taken[name] = true
		}
	}
}
