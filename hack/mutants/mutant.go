package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// mutant is one small change of the code.
type mutant struct {
	Key      string // identifies the change; it stays the same as long as the function does not change
	File     string // from the root of the checkout
	Line     int
	Function string
	Kind     string // what kind of code is changed, in words
	Before   string // the code that is replaced
	After    string

	start, end int // the offsets of Before in the file
}

// mutantsOf returns all changes of the files in a folder, without its tests and generated files.
func mutantsOf(root, folder string) (all []mutant, err error) {
	files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(filepath.Base(file), "zz_generated") {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		positions := token.NewFileSet()
		parsed, err := parser.ParseFile(positions, file, content, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		relative, err := filepath.Rel(root, file)
		if err != nil {
			return nil, err
		}
		for _, decl := range parsed.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Body != nil {
				m := &maker{file: filepath.ToSlash(relative), content: content, positions: positions, fn: fn}
				ast.Inspect(fn.Body, m.visit)
				all = append(all, m.made...)
			}
		}
	}
	return all, nil
}

// maker makes the changes of one function, one by one.
type maker struct {
	file      string
	content   []byte
	positions *token.FileSet
	fn        *ast.FuncDecl
	made      []mutant
}

var swapped = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR, token.EQL: token.NEQ, token.NEQ: token.EQL,
	token.LAND: token.LOR, token.LOR: token.LAND, token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL,
}

// visit adds the changes of one node.
func (m *maker) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt:
		m.add("a negated condition", n.Cond, "!("+m.text(n.Cond)+")")
	case *ast.BinaryExpr:
		if other, ok := swapped[n.Op]; ok && !isText(n) {
			m.addAt("another operator", n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), other.String())
		}
	case *ast.ReturnStmt:
		m.returned(n)
	case *ast.BlockStmt:
		for _, statement := range n.List {
			m.dropped(statement)
		}
	case *ast.CaseClause:
		for _, statement := range n.Body {
			m.dropped(statement)
		}
	case *ast.BranchStmt:
		switch {
		case n.Label != nil:
		case n.Tok == token.BREAK:
			m.add("another branch", n, "continue")
		case n.Tok == token.CONTINUE:
			m.add("another branch", n, "break")
		}
	case *ast.CallExpr:
		m.options(n)
	case *ast.BasicLit:
		if value, err := strconv.Atoi(n.Value); n.Kind == token.INT && err == nil {
			m.add("another number", n, strconv.Itoa(value+1))
		}
	}
	return true
}

// isText reports whether an operand of an expression is a string literal: strings cannot be subtracted.
func isText(e *ast.BinaryExpr) bool {
	for _, operand := range []ast.Expr{e.X, e.Y} {
		switch operand := operand.(type) {
		case *ast.BasicLit:
			if operand.Kind == token.STRING && e.Op == token.ADD {
				return true
			}
		case *ast.BinaryExpr:
			if e.Op == token.ADD && isText(operand) {
				return true
			}
		}
	}
	return false
}

// returned adds the changes of a return statement: an error is not returned, or true and false are exchanged.
func (m *maker) returned(n *ast.ReturnStmt) {
	for i, result := range n.Results {
		id, ok := result.(*ast.Ident)
		switch {
		case !ok:
		case id.Name == "true":
			m.add("another result", result, "false")
		case id.Name == "false":
			m.add("another result", result, "true")
		case id.Name == "err" && i == len(n.Results)-1:
			m.add("an error not returned", result, "nil")
		}
	}
}

// dropped adds the change that removes a statement.
func (m *maker) dropped(statement ast.Stmt) {
	switch s := statement.(type) {
	case *ast.ExprStmt:
		if _, isCall := s.X.(*ast.CallExpr); isCall {
			m.add("a call left out", s, "")
		}
	case *ast.AssignStmt:
		if id, ok := s.Lhs[0].(*ast.Ident); s.Tok != token.DEFINE && (!ok || id.Name != "_") {
			m.add("an assignment left out", s, "")
		}
	case *ast.IncDecStmt:
		m.add("a count left out", s, "")
	}
}

// options adds the changes that remove an option. An option is the last argument of a call if it is itself a call, or a method in a
// chain of calls.
func (m *maker) options(call *ast.CallExpr) {
	if len(call.Args) > 1 && call.Ellipsis == token.NoPos {
		last := call.Args[len(call.Args)-1]
		if _, isCall := last.(*ast.CallExpr); isCall {
			m.addAt("an option left out", call.Args[len(call.Args)-2].End(), last.End(), "")
		}
	}
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return
	}
	if _, inChain := selector.X.(*ast.CallExpr); inChain {
		m.addAt("an option left out", selector.X.End(), call.End(), "")
	}
}

func (m *maker) add(kind string, n ast.Node, after string) { m.addAt(kind, n.Pos(), n.End(), after) }

func (m *maker) addAt(kind string, from, to token.Pos, after string) {
	start, end := m.positions.Position(from), m.positions.Position(to)
	same := 0
	for _, other := range m.made {
		if other.Kind == kind {
			same++
		}
	}
	key := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s\n%d", m.file, m.text(m.fn), kind, same))
	m.made = append(m.made, mutant{
		Key: hex.EncodeToString(key[:])[:12], File: m.file, Line: start.Line, Function: m.name(), Kind: kind,
		Before: string(m.content[start.Offset:end.Offset]), After: after, start: start.Offset, end: end.Offset,
	})
}

// name returns the name of the function, with its receiver's type.
func (m *maker) name() string {
	if m.fn.Recv == nil {
		return m.fn.Name.Name
	}
	receiver := m.fn.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	switch generic := receiver.(type) {
	case *ast.IndexExpr:
		receiver = generic.X
	case *ast.IndexListExpr:
		receiver = generic.X
	}
	return m.text(receiver) + "." + m.fn.Name.Name
}

func (m *maker) text(n ast.Node) string {
	return string(m.content[m.positions.Position(n.Pos()).Offset:m.positions.Position(n.End()).Offset])
}

// apply returns the content of the file after the change.
func (m *mutant) apply(content []byte) []byte {
	return slices.Concat(content[:m.start], []byte(m.After), content[m.end:])
}
