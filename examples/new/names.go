package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// modulePath is the path of the module of the examples, and libraryPath is the path of the library.
const (
	libraryPath = "github.com/opblocks/opblocks"
	modulePath  = libraryPath + "/examples"
)

// names are the names of an operator and of its API.
type names struct {
	// packages is the import path of the operator's folder. In a copy it is the path of the module.
	packages string
	// shared is the import path of the folder internal, with what the tests import.
	shared  string
	kind    string // Shop
	lower   string // shop, which kubectl accepts as the singular, and which names the operator's own objects
	plural  string // shops
	group   string // shop.example.com
	version string // v1alpha1
	alias   string // shopv1alpha1, the import name of the API's package
}

// plurals returns the plural of the kind as it stands in sentences and in identifiers: Shops.
func (n *names) plurals() string {
	if strings.HasPrefix(n.plural, n.lower) {
		return n.kind + n.plural[len(n.lower):]
	}
	return strings.ToUpper(n.plural[:1]) + n.plural[1:]
}

// sample returns the name of the sample's file, without its extension.
func (n *names) sample() string { return n.groupLabel() + "_" + n.version + "_" + n.lower }

// webhookPath returns the end of the paths of the kind's webhooks, as controller-runtime makes it.
func (n *names) webhookPath() string {
	return strings.ReplaceAll(n.group, ".", "-") + "-" + n.version + "-" + n.lower
}

func (n *names) groupLabel() string {
	label, _, _ := strings.Cut(n.group, ".")
	return label
}

var groupMarker = regexp.MustCompile(`(?m)^// \+groupName=(\S+)$`)

// namesOf returns the names of an example, as its source declares them.
func namesOf(source fs.FS, example string) (*names, error) {
	n := &names{packages: modulePath + "/" + example, shared: modulePath + "/internal", lower: example}
	api, err := fs.Glob(source, example+"/api/*/*.go")
	if err != nil {
		return nil, err
	}
	types := map[string]bool{}
	for _, name := range api {
		text, err := fs.ReadFile(source, name)
		if err != nil {
			return nil, err
		}
		if group := groupMarker.FindSubmatch(text); group != nil {
			n.group = string(group[1])
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for name := range topLevel(parsed) {
			types[name] = true
		}
	}
	for name := range types {
		if strings.EqualFold(name, example) && types[name+"List"] {
			n.kind = name
		}
	}
	crds, err := fs.Glob(source, example+"/config/crd/bases/"+n.group+"_*.yaml")
	if err != nil {
		return nil, err
	}
	if n.kind == "" || n.group == "" || len(crds) != 1 {
		return nil, fmt.Errorf("example %s has no kind of its name, no group or not one CRD", example)
	}
	n.plural = strings.TrimSuffix(strings.TrimPrefix(path.Base(crds[0]), n.group+"_"), ".yaml")
	n.version, err = storageVersion(source, crds[0])
	return n, err
}

// topLevel returns the names of the functions, types, constants and variables that a file declares, without methods.
func topLevel(f *ast.File) map[string]bool {
	declared := map[string]bool{}
	for _, decl := range f.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil {
				declared[decl.Name.Name] = true
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					declared[spec.Name.Name] = true
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						declared[name.Name] = true
					}
				}
			}
		}
	}
	return declared
}
