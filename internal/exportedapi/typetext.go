package main

import (
	"fmt"
	"go/types"
	"slices"
	"strconv"
	"strings"
)

// typeText writes types as strings that change only if the type changes.
type typeText struct {
	module string
	public map[*types.TypeName]string // the names of the aliases by which users know types of internal packages
}

// publicNames returns the names that aliases in the packages give to types of internal packages.
func publicNames(packages []*types.Package, module string) map[*types.TypeName]string {
	w := typeText{module: module}
	names := map[*types.TypeName]string{}
	for _, pkg := range packages {
		for _, name := range pkg.Scope().Names() {
			alias, ok := pkg.Scope().Lookup(name).(*types.TypeName)
			if !ok || !alias.IsAlias() || !alias.Exported() {
				continue
			}
			if t, ok := types.Unalias(alias.Type()).(*types.Named); ok && w.isInternal(t.Obj().Pkg()) && names[t.Obj()] == "" {
				names[t.Obj()] = w.packageName(pkg) + "." + name
			}
		}
	}
	return names
}

// isInternal reports whether users cannot import a package of this module.
func (w typeText) isInternal(pkg *types.Package) bool {
	return w.ours(pkg) && slices.Contains(strings.Split(pkg.Path(), "/"), "internal")
}

// packageName returns the path of a package, without the path of the module.
func (w typeText) packageName(pkg *types.Package) string {
	if pkg.Path() == w.module {
		return pkg.Name()
	}
	return strings.TrimPrefix(pkg.Path(), w.module+"/")
}

func (w typeText) ours(pkg *types.Package) bool {
	return pkg != nil && (pkg.Path() == w.module || strings.HasPrefix(pkg.Path(), w.module+"/"))
}

// text returns the text of a type.
func (w typeText) text(t types.Type) string {
	switch t := t.(type) {
	case *types.Alias:
		if t.Obj().Pkg() == nil || w.ours(t.Obj().Pkg()) {
			return w.text(t.Rhs()) // any, or an alias of this module
		}
		return w.named(t.Obj(), t.TypeArgs()) // other modules replace types by aliases, and the name stays the same
	case *types.Basic:
		if t.Info()&types.IsUntyped == 0 && t.Kind() != types.UnsafePointer {
			return types.Typ[t.Kind()].Name() // uint8 and int32 for their aliases byte and rune
		}
		return t.Name()
	case *types.Named:
		return w.named(t.Obj(), t.TypeArgs())
	case *types.TypeParam:
		return "$" + strconv.Itoa(t.Index())
	case *types.Pointer:
		return "*" + w.text(t.Elem())
	case *types.Slice:
		return "[]" + w.text(t.Elem())
	case *types.Array:
		return fmt.Sprintf("[%d]%s", t.Len(), w.text(t.Elem()))
	case *types.Map:
		return "map[" + w.text(t.Key()) + "]" + w.text(t.Elem())
	case *types.Chan:
		return map[types.ChanDir]string{types.SendRecv: "chan ", types.SendOnly: "chan<- ", types.RecvOnly: "<-chan "}[t.Dir()] +
			"(" + w.text(t.Elem()) + ")"
	case *types.Signature:
		return "func" + w.parameters(t.TypeParams()) + w.signature(t)
	case *types.Struct:
		return w.fields(t)
	case *types.Interface:
		return w.methods(t)
	case *types.Union:
		return w.union(t)
	default:
		panic(fmt.Sprintf("no text is known for %T", t))
	}
}

func (w typeText) named(obj *types.TypeName, arguments *types.TypeList) string {
	name := obj.Name()
	if public := w.public[obj]; public != "" {
		return public
	}
	if w.ours(obj.Pkg()) && !obj.Exported() {
		name = "unexported" // users cannot name an unexported type, so its name does not matter
	}
	if obj.Pkg() != nil {
		name = w.packageName(obj.Pkg()) + "." + name
	}
	if arguments.Len() == 0 {
		return name
	}
	var texts []string
	for argument := range arguments.Types() {
		texts = append(texts, w.text(argument))
	}
	return name + "[" + strings.Join(texts, ", ") + "]"
}

// parameters returns the text of type parameters in brackets, or "" if there are none.
func (w typeText) parameters(list *types.TypeParamList) string {
	if list.Len() == 0 {
		return ""
	}
	var texts []string
	for parameter := range list.TypeParams() {
		texts = append(texts, w.text(parameter)+" "+w.text(parameter.Constraint()))
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// signature returns parameters and results without names.
func (w typeText) signature(t *types.Signature) string {
	var parameters, results []string
	for parameter := range t.Params().Variables() {
		parameters = append(parameters, w.text(parameter.Type()))
	}
	if last := len(parameters) - 1; t.Variadic() {
		parameters[last] = "..." + strings.TrimPrefix(parameters[last], "[]")
	}
	for result := range t.Results().Variables() {
		results = append(results, w.text(result.Type()))
	}
	text := "(" + strings.Join(parameters, ", ") + ")"
	switch len(results) {
	case 0:
		return text
	case 1:
		return text + " " + results[0]
	default:
		return text + " (" + strings.Join(results, ", ") + ")"
	}
}

func (w typeText) fields(t *types.Struct) string {
	var texts []string
	for i := range t.NumFields() {
		texts = append(texts, strings.TrimSpace(t.Field(i).Name()+" "+w.text(t.Field(i).Type())+" "+t.Tag(i)))
	}
	return "struct{" + strings.Join(texts, "; ") + "}"
}

// methods returns an interface as a string: the types of a constraint, the names of embedded interfaces of other modules, and its methods,
// including the methods of embedded interfaces of this module.
func (w typeText) methods(t *types.Interface) string {
	embedded, methods := w.elements(t)
	slices.Sort(methods)
	texts := slices.Concat(embedded, slices.Compact(methods))
	if len(texts) == 0 {
		return "any"
	}
	return "interface{ " + strings.Join(texts, "; ") + " }"
}

func (w typeText) elements(t *types.Interface) (embedded, methods []string) {
	for method := range t.ExplicitMethods() {
		methods = append(methods, method.Name()+w.signature(method.Signature()))
	}
	for element := range t.EmbeddedTypes() {
		under, isInterface := element.Underlying().(*types.Interface)
		named, isNamed := types.Unalias(element).(*types.Named)
		if !isInterface || isNamed && !w.ours(named.Obj().Pkg()) {
			embedded = append(embedded, w.text(element)) // for example ~int | ~string, comparable or client.Object
			continue
		}
		e, m := w.elements(under)
		embedded, methods = append(embedded, e...), append(methods, m...)
	}
	return embedded, methods
}

func (w typeText) union(t *types.Union) string {
	var texts []string
	for term := range t.Terms() {
		tilde := ""
		if term.Tilde() {
			tilde = "~"
		}
		texts = append(texts, tilde+w.text(term.Type()))
	}
	return strings.Join(texts, " | ")
}
