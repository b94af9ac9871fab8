/*
 * ptx_parse.h: the parser's state and the functions of its parts (lexer, declarations, function bodies, decoders).
 *
 * Errors in the text leave through ptx_die (longjmp to ptx_parse); all memory hangs on the module's arena. An instruction
 * the decoders do not know is no error: it becomes one that faults when reached.
 */
#ifndef PTX_PARSE_H
#define PTX_PARSE_H

#include "ptx_internal.h"

#include <stdarg.h>
#include <string.h>

enum ptx_tok { T_END, T_IDENT, T_DIRECTIVE, T_INT, T_F32, T_F64, T_STRING, T_PUNCT };

struct token {
	enum ptx_tok kind;
	const char *s; /* text of T_IDENT, T_DIRECTIVE (with its dot), T_STRING */
	uint32_t n, line;
	uint64_t u; /* value, or the character of T_PUNCT */
};

enum ptx_symkind { SYM_REG, SYM_RANGE, SYM_GLOBAL, SYM_SHARED, SYM_LOCAL, SYM_PARAM, SYM_FUNC, SYM_LABEL, SYM_TARGETS };

struct sym {
	const char *name;
	uint32_t n;
	enum ptx_symkind kind;
	uint32_t ref;      /* virtual register, global, shared variable, function, label or target list */
	uint64_t off;      /* offset in the frame or in the kernel's parameters */
	uint64_t size;
	uint32_t *regs, count; /* SYM_RANGE: registers by number */
	uint8_t cls;
	enum ptx_type type; /* SYM_REG and SYM_RANGE */
	bool in_frame; /* SYM_PARAM of a function or of a call */
	bool call;     /* SYM_PARAM of a call */
	bool is_const; /* SYM_GLOBAL */
	int32_t next;
	uint32_t bucket;
};

enum ptx_atomkind { A_NONE, A_REG, A_INT, A_F32, A_F64, A_NAME, A_SYM, A_SINK };

#define PTX_MAX_VECTOR 8

/* One value in an operand. */
struct value {
	enum ptx_atomkind kind;
	uint32_t reg;
	enum ptx_type type; /* A_REG: as declared */
	uint64_t bits; /* A_INT, A_F32, A_F64 */
	struct sym sym; /* A_SYM, a copy: the table moves */
	const char *name;
	uint32_t n;
	int64_t off; /* A_SYM, A_REG: + off */
};

struct operand {
	struct value a, q;  /* q: the part behind '|' */
	bool negate, is_addr, is_vec, has_q;
	uint32_t n;
	struct value v[PTX_MAX_VECTOR];
};

#define PTX_MAX_OPERANDS 8
#define PTX_MAX_MODS 14

struct label { const char *name; uint32_t n, at, line, block; bool placed; };
struct fixup { uint32_t insn, label; };
struct target_list { uint32_t *labels, n; };

struct parser {
	const char *p, *end;
	uint32_t line;
	struct token tok;
	struct ptx_module *m;
	uint32_t version, target; /* 78 and 80 in a module of ".version 7.8" for sm_80 */
	bool specific;            /* .target sm_90a and the like */
	uint64_t const_bytes;
	jmp_buf fail;
	char *err;
	size_t err_cap;

	struct sym *syms;
	uint32_t nsyms, cap_syms, scope; /* scope: the first symbol of the innermost scope */
	int32_t bucket[4096];

	/* the function being read */
	struct func *f;
	uint32_t fi;
	struct label *labels;
	struct fixup *fixups;
	struct target_list *lists;
	uint32_t nlabels, cap_labels, nfixups, cap_fixups, nlists, cap_lists;
	uint32_t *const_bucket;
	uint32_t block;  /* index of the BLOCK being filled */
	uint32_t *outer, nouter, cap_outer; /* of each pair of braces, in the order of the text: the one around it */
	uint32_t inside; /* the innermost one, from 1 */
	uint32_t sink_pred, sink32, sink64;

	/* the statement being read */
	const char *text; /* whole opcode */
	const char *base, *mod[PTX_MAX_MODS];
	bool mod_used[PTX_MAX_MODS];
	uint32_t nmods, stmt_line;
	struct operand op[PTX_MAX_OPERANDS];
	uint32_t nops;
	bool bad; /* an operand did not fit */
};

_Noreturn void ptx_die(struct parser *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void *ptx_need(struct parser *p, size_t n, size_t each);
/* Makes room for one more element of an arena array. */
void *ptx_grow(struct parser *p, void *old, uint32_t n, uint32_t *cap, size_t each);
const char *ptx_intern(struct parser *p, const char *s, uint32_t n);

/* lexer */
void ptx_next(struct parser *p);
bool ptx_is(const struct parser *p, char c);
bool ptx_accept(struct parser *p, char c);
void ptx_expect(struct parser *p, char c);
bool ptx_word(const struct parser *p, const char *word); /* identifier or directive */

/* symbols */
struct sym *ptx_lookup(struct parser *p, const char *name, uint32_t n);
/* A name may be declared once in a scope. */
struct sym *ptx_declare(struct parser *p, const char *name, uint32_t n, enum ptx_symkind kind);
void ptx_close_scope(struct parser *p, uint32_t mark);

enum ptx_type ptx_type_of(const char *s, size_t n); /* "f32" */
uint32_t ptx_type_bytes(enum ptx_type t);
uint8_t ptx_type_class(enum ptx_type t);
bool ptx_type_signed(enum ptx_type t);
bool ptx_type_unsigned(enum ptx_type t);
bool ptx_type_float(enum ptx_type t);

/* A variable declaration behind its state space: ".align 4 .b8 name[16]". */
struct decl { const char *name; uint32_t n, align, elem; uint64_t count; bool array, open; enum ptx_type type; };
void ptx_declaration(struct parser *p, struct decl *d);
int64_t ptx_integer(struct parser *p);
void ptx_space_variable(struct parser *p, enum ptx_symkind kind, bool is_const, bool is_extern);
void ptx_reg_declaration(struct parser *p);
uint32_t ptx_frame_slot(struct parser *p, uint64_t size, uint32_t align);

void ptx_body(struct parser *p);
void ptx_header(struct parser *p); /* .version and .target */
void ptx_address_size(struct parser *p);

/* virtual registers and emission */
uint32_t ptx_vreg(struct parser *p, uint8_t cls);
uint32_t ptx_pinned(struct parser *p, uint8_t cls);
uint32_t ptx_constant(struct parser *p, uint8_t cls, uint64_t v, enum ptx_reloc reloc, uint32_t ref);
struct insn *ptx_emit(struct parser *p, enum ptx_op op);
/* emit with ndst results and the sources behind them */
struct insn *ptx_op(struct parser *p, enum ptx_op op, int ndef, int nuse, ...);
uint32_t ptx_new_label(struct parser *p, const char *name, uint32_t n);
void ptx_place_label(struct parser *p, uint32_t label);
void ptx_new_block(struct parser *p);
void ptx_branch(struct parser *p, struct insn *in, uint32_t label);
/* A label is visible in the braces around it and in those inside them. */
bool ptx_visible(const struct parser *p, uint32_t label);

/* modifiers of the statement */
bool ptx_mod(struct parser *p, const char *name); /* present? marks it as understood */
enum ptx_type ptx_last_type(struct parser *p);    /* the last type among the modifiers not yet understood */

/* Operands as virtual registers. An operand that does not fit sets p->bad. */
uint32_t ptx_src(struct parser *p, const struct value *v, enum ptx_type t);
uint32_t ptx_in(struct parser *p, uint32_t i, enum ptx_type t);
uint32_t ptx_out(struct parser *p, uint32_t i, enum ptx_type t);
uint32_t ptx_pred_in(struct parser *p, uint32_t i);
uint8_t ptx_class_of(const struct parser *p, uint32_t reg);
/* The widths in which mov reads a special register, 2 | 4 | 8; 0 if there is none of this name. */
uint32_t ptx_special(const struct parser *p, const char *name, uint32_t n);
/* Reads one operand. False for forms that only unsupported instructions have. */
bool ptx_read_operand(struct parser *p, struct operand *o);

/* The forms that PTX has (ptx_forms.c), for ptx_check.c. */
struct ptx_form { const char *names, *mods, *types, *operands; uint16_t version, target; };
extern const struct ptx_form ptx_forms[], ptx_unchecked[];
_Noreturn void ptx_refuse(struct parser *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* True for an instruction of PTX of which no form is simulated or checked. */
bool ptx_is_unchecked(struct parser *p);
/* Refuses an instruction that PTX does not have in this form; read: its operands are in p->op. */
void ptx_check(struct parser *p, bool read);

/* Decoders by opcode: false when the instruction is not supported. */
typedef bool (*ptx_decoder)(struct parser *p);
struct ptx_opcode { const char *name; ptx_decoder decode; };
extern const struct ptx_opcode ptx_int_opcodes[], ptx_float_opcodes[], ptx_mem_opcodes[], ptx_control_opcodes[], ptx_matrix_opcodes[];
bool ptx_float_arith(struct parser *p, enum ptx_type t); /* add sub mul mad min max neg abs div on a floating type */
/* The first operation of a floating comparison, and its operands as registers of the type compared in. */
bool ptx_float_compare(struct parser *p, const char *cmp, enum ptx_type t, enum ptx_op *op, uint32_t *a, uint32_t *b);
bool ptx_call(struct parser *p);

#endif
