//! What an agent is told: its goal, the bounds of its work, and how to answer. No I/O.

use crate::executor::json;
use crate::executor::schedule::task::Content;

/// What the agent reads: the goal, its bounds, and how to say what is not in its edits.
pub fn instructions(content: &Content, before: Option<&PreviousTask>) -> String {
    let mut text = content.goal.trim_end().to_owned() + "\n";
    if let Some(before) = before {
        text += &format!(
            "\nThis continues an earlier task, whose goal was:\n{}\n",
            before.goal
        );
        if let Some(question) = &before.question {
            text += &format!("It ended with the question:\n{question}\n");
        } else if let Some(summary) = &before.summary {
            text += &format!("It ended with the words:\n{summary}\n");
        }
    }
    match content.files.as_deref() {
        None => {}
        Some([]) => text += "\nNo file may be changed.\n",
        Some(files) => {
            text += "\nOnly these files may be changed:\n";
            files.iter().for_each(|file| text += &format!("- {file}\n"));
        }
    }
    let words: Vec<&str> = content.words().collect();
    if !words.is_empty() {
        text += "\nIt is done when:\n";
        words.iter().for_each(|word| text += &format!("- {word}\n"));
    }
    let gates = content.gates();
    if !gates.is_empty() {
        text += &format!(
            "\nThese checks are run when you have ended: {}\n",
            gates.join(", ")
        );
    }
    text + "\nEdit the files in the current directory; there is no need to commit. Nobody answers \
            questions while you work. If nothing needs to be changed, or if you cannot go on \
            without an answer, write a JSON object into the file that the environment variable \
            ROCCO_OUTCOME names: {\"outcome\":\"no_change_needed\",\"summary\":\"...\"} or \
            {\"outcome\":\"needs_input\",\"question\":\"...\"}. In any other case you may write \
            {\"outcome\":\"done\",\"summary\":\"...\"} there.\n"
}

/// What is known of an earlier task that is continued.
#[derive(Debug)]
pub struct PreviousTask {
    goal: String,
    question: Option<String>,
    summary: Option<String>,
}

impl PreviousTask {
    /// Of its goal and its record.
    pub fn from_record(goal: &str, record: &[u8]) -> Self {
        let texts = json::with(record, |record| {
            let text = |name| json::text(record, name).map(str::to_owned);
            (text("question"), text("summary"))
        });
        let (question, summary) = texts.unwrap_or_default();
        Self {
            goal: goal.to_owned(),
            question,
            summary,
        }
    }
}
